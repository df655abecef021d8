//! HTTP/1.1 client for these tests, and no more than that.

use acp_conformance::model::{FakeModel, FakeModelConfig, ScriptedResponse, parse_script};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Starts a fake model with this script.
pub(crate) async fn start_model(script: &str) -> FakeModel {
    let model = FakeModel::start(FakeModelConfig::default())
        .await
        .expect("a port");
    model.set_script(None, parse_responses(script));
    model
}

pub(crate) fn parse_responses(script: &str) -> Vec<ScriptedResponse> {
    parse_script(script).expect("a script")
}

/// Returns a connection on which a request has been written.
pub(crate) async fn send_request(
    model: &FakeModel,
    method: &str,
    path: &str,
    body: &str,
) -> TcpStream {
    let address = model.base_url().strip_prefix("http://").expect("http");
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer s3cret\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.expect("written");
    stream
}

/// HTTP response.
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
    /// True if the transfer ended properly.
    pub(crate) is_complete: bool,
}

pub(crate) async fn post(model: &FakeModel, path: &str, body: &Value) -> HttpResponse {
    read_response(send_request(model, "POST", path, &body.to_string()).await).await
}

pub(crate) async fn get(model: &FakeModel, path: &str) -> HttpResponse {
    read_response(send_request(model, "GET", path, "").await).await
}

pub(crate) async fn read_response(mut stream: TcpStream) -> HttpResponse {
    let mut bytes = Vec::new();
    // A dropped connection may end in a reset; the bytes before it count.
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).expect("UTF-8");
    let (head, rest) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.get(9..12).and_then(|digits| digits.parse().ok());
    let head = head.to_lowercase();
    let (body, whole) = if head.contains("transfer-encoding: chunked") {
        decode_chunked(rest)
    } else {
        (rest.to_owned(), true)
    };
    HttpResponse {
        status: status.unwrap_or(0),
        head,
        body,
        is_complete: whole,
    }
}

fn decode_chunked(mut rest: &str) -> (String, bool) {
    let mut body = String::new();
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).expect("a length");
        if length == 0 {
            return (body, true);
        }
        let Some(chunk) = after.get(..length) else {
            break;
        };
        body.push_str(chunk);
        rest = &after[length + 2..];
    }
    (body, false)
}

impl HttpResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// Returns the events as name and data, and checks their exact framing.
    pub(crate) fn events(&self) -> Vec<(Option<String>, Value)> {
        assert!(self.head.contains("content-type: text/event-stream"));
        let body = self.body.strip_suffix("\n\n").expect("the last event ends");
        let events = body.split("\n\n").map(|event| {
            let (name, data) = match event.split_once('\n') {
                Some((name, data)) => (name.strip_prefix("event: "), data),
                None => (None, event),
            };
            let data = data.strip_prefix("data: ").expect("data");
            let data = serde_json::from_str(data).unwrap_or_else(|_| data.into());
            (name.map(str::to_owned), data)
        });
        events.collect()
    }

    /// Returns the data of events without a name.
    pub(crate) fn unnamed_events(&self) -> Vec<Value> {
        let events = self.events().into_iter();
        events
            .map(|(name, data)| {
                assert_eq!(name, None);
                data
            })
            .collect()
    }

    /// Returns the data of events whose name is their type.
    pub(crate) fn named_events(&self) -> Vec<Value> {
        let events = self.events().into_iter();
        events
            .map(|(name, data)| {
                assert_eq!(name.as_deref(), data["type"].as_str());
                data
            })
            .collect()
    }
}
