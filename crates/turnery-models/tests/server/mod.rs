//! A model server on loopback that plays recorded bytes, one reply per connection. It refuses requests that the real API
//! would refuse.

#![expect(dead_code, reason = "not every test file needs all of it")]

mod judge;

use judge::Judge;
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::Value;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
};
use turnery_engine::{
    Content, DocumentData, ImageData, LlmMessage, Message, MessageId, MessageStop, ModelDelta,
    ModelError, ModelErrorKind, Response, ResponseLimits, ToolCall, ToolSpec,
};
use turnery_models::{
    Api, CallLimits, Model, ModelEvent, ModelEventSender, ModelName, ModelRegistry, ModelRequest,
    ProviderConfig, RetryPolicy, Thinking, ToolChoice,
};

/// Reply on one connection: these writes, then the connection is closed or held open.
pub(crate) struct Reply {
    pub(crate) writes: Vec<Vec<u8>>,
    pub(crate) is_held: bool,
}

/// A running server. Dropping it fails the test if it has refused a request.
pub(crate) struct ModelServer {
    pub(crate) base_url: String,
    /// Headers and body of each request.
    pub(crate) requests: Arc<Mutex<Vec<(String, Value)>>>,
    /// Notified when the client closes a held connection.
    pub(crate) closed: Arc<Notify>,
    judge: Arc<Judge>,
}

/// Returns an event stream that ends with the connection.
pub(crate) fn event_response(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}")
        .into_bytes()
}

/// Returns the same stream as one chunk, so that the end is part of the protocol.
pub(crate) fn chunked_response(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    )
    .into_bytes()
}

/// Returns an error response.
pub(crate) fn error_response(line: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {line}\r\ncontent-type: application/json\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Plays `replies`, one per connection, each in one write.
pub(crate) async fn serve(replies: Vec<Vec<u8>>) -> ModelServer {
    let whole = |bytes| Reply {
        writes: vec![bytes],
        is_held: false,
    };
    serve_replies(replies.into_iter().map(whole).collect()).await
}

/// Plays `replies`, one per connection.
pub(crate) async fn serve_replies(replies: Vec<Reply>) -> ModelServer {
    let (server, listener) = ModelServer::bind().await;
    let (requests, closed) = (server.requests.clone(), server.closed.clone());
    let judge = server.judge.clone();
    tokio::spawn(async move {
        for mut reply in replies {
            let (mut socket, _) = listener.accept().await.expect("a connection");
            socket.set_nodelay(true).expect("no delay");
            let request = read_request(&mut socket).await;
            let refusal = judge.refusal(&request);
            requests.lock().expect("the requests").push(request);
            if let Some(refusal) = refusal {
                reply = Reply {
                    writes: vec![refusal],
                    is_held: false,
                };
            }
            for bytes in reply.writes {
                if socket.write_all(&bytes).await.is_err() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            if reply.is_held {
                while socket.read(&mut [0; 64]).await.is_ok_and(|n| n > 0) {}
                closed.notify_one();
            }
        }
    });
    server
}

/// Plays `replies`, all on the first connection; there is no second.
pub(crate) async fn serve_one_connection(replies: Vec<Vec<u8>>) -> ModelServer {
    let (server, listener) = ModelServer::bind().await;
    let (requests, judge) = (server.requests.clone(), server.judge.clone());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a connection");
        drop(listener);
        for reply in replies {
            let request = read_request(&mut socket).await;
            let reply = judge.refusal(&request).unwrap_or(reply);
            requests.lock().expect("the requests").push(request);
            socket.write_all(&reply).await.expect("the client reads");
        }
    });
    server
}

async fn read_request(socket: &mut TcpStream) -> (String, Value) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .and_then(|value| value.parse().ok())
                .expect("a length");
            if body.len() >= length {
                let body = serde_json::from_str(body).expect("a JSON body");
                return (head.to_owned(), body);
            }
        }
        let mut piece = vec![0; 65536];
        let n = socket.read(&mut piece).await.expect("a request");
        assert!(n > 0, "the request broke off");
        bytes.extend_from_slice(&piece[..n]);
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.judge.assert_nothing_refused();
        }
    }
}

impl ModelServer {
    /// Returns a server whose requests are still to be accepted.
    pub(crate) async fn bind() -> (Self, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = Self {
            base_url: format!("http://{address}"),
            requests: Arc::default(),
            closed: Arc::default(),
            judge: Arc::default(),
        };
        (server, listener)
    }

    /// Returns a model of this server with the key `sk-test`. Only a hang exceeds its idle limit.
    pub(crate) fn model(&self, api: Api, model: &str) -> Arc<dyn Model> {
        self.model_with_retries(api, model, 3)
    }

    pub(crate) fn model_with_retries(&self, api: Api, model: &str, retries: u32) -> Arc<dyn Model> {
        self.model_with_idle_limit(api, model, retries, Duration::from_secs(120))
    }

    /// Returns a model of this server with this idle limit.
    pub(crate) fn model_with_idle_limit(
        &self,
        api: Api,
        model: &str,
        retries: u32,
        idle: Duration,
    ) -> Arc<dyn Model> {
        let path = match api {
            Api::Anthropic => "",
            Api::OpenAi | Api::OpenAiResponses => "/v1",
            Api::Gemini => "/v1beta",
        };
        let provider = ProviderConfig {
            key: Some("sk-test".to_owned().into()),
            key_hint: "ACME_KEY".to_owned(),
            ..ProviderConfig::new("acme", api, format!("{}{path}", self.base_url))
        };
        let limits = CallLimits {
            idle,
            retry: RetryPolicy {
                max_retries: retries,
                initial_wait: Duration::from_millis(1),
                ..RetryPolicy::default()
            },
            ..CallLimits::default()
        };
        let registry = ModelRegistry::new(vec![provider]).limits(limits);
        let name = ModelName::new("acme", model);
        registry.model(&name).expect("a model")
    }

    pub(crate) fn bodies(&self) -> Vec<Value> {
        let requests = self.requests.lock().expect("the requests");
        requests.iter().map(|(_, body)| body.clone()).collect()
    }
}

/// Calls the model and collects its deltas.
pub(crate) async fn call_for_deltas(
    model: &dyn Model,
    request: ModelRequest,
) -> (Result<Response, ModelError>, Vec<ModelDelta>) {
    let (response, events) = call_for_events(model, request).await;
    let deltas = events
        .into_iter()
        .filter_map(|event| match event {
            ModelEvent::Delta(delta) => Some(delta),
            ModelEvent::Retry(_) | ModelEvent::Silence(_) => None,
        })
        .collect();
    (response, deltas)
}

/// Calls the model, which must fail.
pub(crate) async fn call_error(model: &dyn Model) -> ModelError {
    let (response, _) = call_for_deltas(model, hello_request()).await;
    response.expect_err("an error")
}

/// Calls the model and collects all events.
pub(crate) async fn call_for_events(
    model: &dyn Model,
    request: ModelRequest,
) -> (Result<Response, ModelError>, Vec<ModelEvent>) {
    let (sender, mut receiver) = ModelEventSender::new(1000);
    let events = async {
        let mut events = Vec::new();
        while let Some(event) = receiver.recv().await {
            events.push(event);
        }
        events
    };
    tokio::join!(model.call(request, sender), events)
}

/// Returns the messages of the user and of tools that a request in the form of Chat or Anthropic sends.
pub(crate) async fn sent_messages(api: Api, model: &str, messages: Vec<Message>) -> Vec<Value> {
    let server = serve(vec![event_response("data: [DONE]\n\n")]).await;
    let model = server.model_with_retries(api, model, 0);
    // The response does not matter.
    let _ = call_for_deltas(&*model, request(messages)).await;
    let mut bodies = server.bodies();
    let mut messages = match bodies.remove(0)["messages"].take() {
        Value::Array(messages) => messages,
        other => panic!("{other}"),
    };
    messages.retain(|message| !matches!(message["role"].as_str(), Some("system" | "assistant")));
    messages
}

/// Returns the response without the fingerprint of its request, which no server sent.
pub(crate) fn without_fingerprint(response: Response) -> Response {
    Response {
        request: None,
        ..response
    }
}

/// Checks that a stream that the server ends too early is an error: within the head the connection is lost; after it, the
/// response lacks its terminal event (LASH-25, C-31).
pub(crate) async fn assert_truncated_is_an_error(api: Api, model: &str, answer: &str) {
    // The last event is complete once its closing brace has arrived.
    let bytes = event_response(answer.trim_end());
    let head = event_response("").len();
    let ends: Vec<usize> = (1..bytes.len()).collect();
    let server = serve(ends.iter().map(|end| bytes[..*end].to_vec()).collect()).await;
    let model = server.model_with_retries(api, model, 0);
    for end in ends {
        let kind = call_error(&*model).await.kind;
        let expected = match end < head {
            true => ModelErrorKind::Network,
            false => ModelErrorKind::Unfinished,
        };
        assert_eq!(kind, expected, "cut at {end}");
    }
}

/// Checks that a response does not depend on where the network splits it in two.
pub(crate) async fn assert_same_when_cut_anywhere(
    api: Api,
    model: &str,
    answer: &str,
    expected: &Response,
    deltas: &[ModelDelta],
) {
    let bytes = chunked_response(answer);
    let replies = (1..bytes.len())
        .map(|cut| Reply {
            writes: vec![bytes[..cut].to_vec(), bytes[cut..].to_vec()],
            is_held: false,
        })
        .collect();
    let server = serve_replies(replies).await;
    let model = server.model(api, model);
    for cut in 1..bytes.len() {
        let (response, streamed) = call_for_deltas(&*model, hello_request()).await;
        let response = response.map(without_fingerprint);
        assert_eq!(response.as_ref(), Ok(expected), "cut at {cut}");
        assert_eq!(streamed, deltas, "cut at {cut}");
    }
}

/// Checks that a response does not depend on the number of pieces.
pub(crate) fn assert_same_when_cut_randomly(
    api: Api,
    model: &str,
    answer: &str,
    expected: &Response,
    deltas: &[ModelDelta],
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let sizes = prop::collection::vec(1usize..400, 30);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(40));
    let outcome = runner.run(&sizes, |sizes| {
        let mut rest = event_response(answer);
        let mut writes = Vec::new();
        for size in sizes {
            let left = rest.split_off(size.min(rest.len()));
            writes.push(std::mem::replace(&mut rest, left));
        }
        writes.push(rest);
        let is_held = false;
        runtime.block_on(async {
            let server = serve_replies(vec![Reply { writes, is_held }]).await;
            let model = server.model(api, model);
            let (response, streamed) = call_for_deltas(&*model, hello_request()).await;
            let response = response.map(without_fingerprint);
            prop_assert_eq!(response.as_ref(), Ok(expected));
            prop_assert_eq!(streamed, deltas);
            Ok(())
        })
    });
    assert_eq!(outcome, Ok(()));
}

pub(crate) fn request(messages: Vec<Message>) -> ModelRequest {
    let with_id = |(i, message)| {
        Arc::new(LlmMessage {
            message_id: MessageId::from(format!("m{i}")),
            turn_id: None,
            message,
        })
    };
    ModelRequest {
        session_id: "s1".into(),
        system: "Be brief.".into(),
        messages: Arc::new(messages.into_iter().enumerate().map(with_id).collect()),
        tools: Arc::new([tool("read", "Reads a file.")]),
        tool_choice: ToolChoice::Auto,
        thinking: Thinking::Default,
        temperature: None,
        answer_limits: ResponseLimits::default(),
    }
}

pub(crate) fn hello_request() -> ModelRequest {
    request(vec![user("hello")])
}

/// A tool without parameters.
pub(crate) fn tool(name: &str, description: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        schema: serde_json::json!({"type": "object"}).into(),
    }
}

pub(crate) fn user(text: &str) -> Message {
    Message::user(text)
}

pub(crate) fn assistant(content: Vec<Content>) -> Message {
    Message::Assistant {
        content,
        stop: MessageStop::ToolUse,
        model: "m1".to_owned(),
        provider: "acme".to_owned(),
        usage: None,
        error: None,
        request: None,
    }
}

pub(crate) fn tool_call(id: &str, name: &str, args: Value) -> Content {
    Content::ToolCall(ToolCall::new(id, name, args))
}

pub(crate) fn picture() -> Content {
    Content::Image(ImageData {
        mime_type: "image/png".to_owned(),
        base64: "QUJD".into(),
    })
}

pub(crate) fn document() -> Content {
    Content::Document(DocumentData {
        name: "a.pdf".to_owned(),
        mime_type: "application/pdf".to_owned(),
        base64: "JVBE".into(),
    })
}

pub(crate) fn thought(signature: Option<&str>) -> Content {
    Content::Thinking {
        text: "Hm".to_owned(),
        signature: signature.map(str::to_owned),
    }
}

/// The result of a call of the tool `read`.
pub(crate) fn tool_result(id: &str, content: Vec<Content>, is_error: bool) -> Message {
    Message::ToolResult {
        call_id: id.into(),
        tool_name: "read".to_owned(),
        content,
        is_error,
    }
}

/// Creates a delta with text of a block.
pub(crate) fn text_delta(block: u32, text: &str) -> ModelDelta {
    ModelDelta::Text {
        block,
        text: text.to_owned(),
    }
}

pub(crate) fn thinking_delta(block: u32, text: &str) -> ModelDelta {
    ModelDelta::Thinking {
        block,
        text: text.to_owned(),
    }
}
