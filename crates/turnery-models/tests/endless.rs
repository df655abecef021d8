//! Tests servers whose responses never end: every kind of response is limited in bytes and time.

mod server;

use server::{ModelServer, call_error, call_for_deltas, event_response, hello_request, serve};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use turnery_engine::{ModelError, ModelErrorKind, Usage};
use turnery_models::{Api, CallLimits, ModelRegistry, ProviderConfig, check_key};

/// A provider whose server is to be played by the test.
async fn provider() -> (ProviderConfig, TcpListener) {
    let (server, listener) = ModelServer::bind().await;
    let provider = ProviderConfig::new("acme", Api::OpenAi, format!("{}/v1", server.base_url));
    (provider, listener)
}

/// Answers one request with `first`, then with `endless` until the client disconnects. With `until`, virtual
/// time advances by that much once the server has started to respond.
async fn error_of_endless_response(
    first: &str,
    endless: &str,
    until: Option<Duration>,
) -> ModelError {
    let (provider, listener) = provider().await;
    let (first, endless) = (first.to_owned(), endless.repeat(64));
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("it works");
        let _ = socket.read(&mut [0; 65536]).await.expect("it works");
        let mut sent = socket.write_all(first.as_bytes()).await;
        if let Some(until) = until {
            sent = socket.write_all(endless.as_bytes()).await;
            tokio::time::pause();
            tokio::time::advance(until).await;
        }
        while sent.is_ok() {
            sent = socket.write_all(endless.as_bytes()).await;
            tokio::task::yield_now().await;
        }
    });
    let limits = CallLimits {
        idle_local: HANG_TIMEOUT,
        retry: turnery_models::RetryPolicy {
            max_retries: 0,
            ..turnery_models::RetryPolicy::default()
        },
        ..CallLimits::default()
    };
    let catalogue = ModelRegistry::new(vec![provider]).limits(limits);
    let model = catalogue
        .model(&"acme/m".parse().expect("it works"))
        .expect("it works");
    let error = call_error(&*model).await;
    // The client has closed the connection: the server's next write fails.
    server.await.expect("it works");
    error
}

#[tokio::test]
async fn endless_100_continue_ends_at_the_idle_limit() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    let error = error_of_endless_response("", interim, Some(HANG_TIMEOUT)).await;
    assert_eq!(error.kind, ModelErrorKind::Timeout, "{error}");
}

const HANG_TIMEOUT: Duration = Duration::from_secs(300);

/// The timeout of a list of models is shorter than that of a response.
#[tokio::test]
async fn silent_list_of_models_ends_after_twenty_seconds() {
    let (provider, listener) = provider().await;
    let silent = async {
        let (mut socket, _) = listener.accept().await.expect("it works");
        let _ = socket.read(&mut [0; 65536]).await.expect("it works");
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(20)).await;
        socket
    };
    let (checked, _socket) = tokio::join!(check_key(&provider), silent);
    assert_eq!(checked.expect_err("an error").kind, ModelErrorKind::Timeout);
}

#[tokio::test]
async fn endless_error_body_is_truncated() {
    let head = "HTTP/1.1 500 Broken\r\ncontent-type: text/plain\r\n\r\n";
    let error = error_of_endless_response(head, "no luck today ", None).await;
    assert_eq!(error.kind, ModelErrorKind::Overloaded, "{error}");
    assert!(error.message.contains("it said: no luck today"), "{error}");
    assert!(error.message.len() < 1_000, "{error}");
}

#[tokio::test]
async fn endless_header_or_event_is_refused() {
    let event = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"a\":\"";
    for (first, endless, kind) in [
        (
            "HTTP/1.1 200 OK\r\n",
            "x-more: and more\r\n",
            ModelErrorKind::Network,
        ),
        (
            "HTTP/1.1 200 OK\r\nx-long: ",
            "and on and on ",
            ModelErrorKind::Network,
        ),
        (event, "xxxxxxxxxxxxxxxx", ModelErrorKind::Protocol),
    ] {
        let error = error_of_endless_response(first, endless, None).await;
        assert_eq!(error.kind, kind, "{first}: {error}");
    }
}

async fn usage_of(api: Api, answer: String) -> Option<Usage> {
    let server = serve(vec![event_response(&answer)]).await;
    let model = server.model_with_retries(api, "m1", 0);
    let response = call_for_deltas(&*model, hello_request())
        .await
        .0
        .expect("it works");
    assert_eq!(response.text(), "Hi");
    response.usage
}

fn tokens(input: u64, output: u64) -> Option<Usage> {
    Some(Usage {
        input,
        output,
        ..Usage::default()
    })
}

/// Unreadable usage is unknown, never zero, and does not fail the response.
// proves: I2
#[tokio::test]
async fn invalid_usage_is_unknown_and_response_is_kept() {
    for (usage, expected) in [
        (r#"{"prompt_tokens":7,"completion_tokens":5}"#, tokens(7, 5)),
        (
            r#"{"prompt_tokens":7.0,"completion_tokens":"5"}"#,
            tokens(7, 5),
        ),
        (r#"{"prompt_tokens":-7,"completion_tokens":5}"#, None),
        (r#"{"prompt_tokens":7,"completion_tokens":-5}"#, None),
        (r#"{"prompt_tokens":7.5,"completion_tokens":5}"#, None),
        (r#"{"prompt_tokens":1e300,"completion_tokens":5}"#, None),
        (r#"{"prompt_tokens":"many","completion_tokens":5}"#, None),
        (
            r#"{"prompt_tokens":7,"prompt_tokens":8,"completion_tokens":5}"#,
            None,
        ),
        (
            r#"{"prompt_tokens":7,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":-1}}"#,
            None,
        ),
        (
            r#"{"prompt_tokens":7,"completion_tokens":5,"prompt_tokens_details":[]}"#,
            None,
        ),
        ("{}", None),
        ("[]", None),
        ("-1", None),
        ("\"none\"", None),
        ("null", None),
    ] {
        let answer = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"Hi\"}},\"finish_reason\":\"stop\"}}],\"usage\":{usage}}}\n\ndata: [DONE]\n\n"
        );
        assert_eq!(usage_of(Api::OpenAi, answer).await, expected, "{usage}");
    }
    for (first, last, expected) in [
        (
            r#"{"input_tokens":7,"output_tokens":1}"#,
            r#"{"output_tokens":5}"#,
            tokens(7, 5),
        ),
        (r#"{"input_tokens":7}"#, r#"{"output_tokens":-5}"#, None),
        (r#"{"input_tokens":-7}"#, r#"{"output_tokens":5}"#, None),
        (
            r#"{"input_tokens":-7}"#,
            r#"{"input_tokens":7,"output_tokens":5}"#,
            tokens(7, 5),
        ),
        (r#"{"input_tokens":7}"#, "[]", None),
        ("\"x\"", r#"{"input_tokens":7,"output_tokens":5}"#, None),
        ("null", "null", None),
    ] {
        let answer = format!(
            "data: {{\"type\":\"message_start\",\"message\":{{\"usage\":{first}}}}}\n\n\
             data: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{{\"type\":\"text\",\"text\":\"Hi\"}}}}\n\n\
             data: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"end_turn\"}},\"usage\":{last}}}\n\n\
             data: {{\"type\":\"message_stop\"}}\n\n"
        );
        let usage = usage_of(Api::Anthropic, answer).await;
        assert_eq!(usage, expected, "{first} {last}");
    }
}
