//! A client of HTTP/1.1 that knows no more than these tests need.

use acp_conformance::model::{Answer, FakeModel, Rules, answers};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A fake model with this script.
pub(crate) async fn model(script: &str) -> FakeModel {
    let model = FakeModel::start(Rules::default()).await.expect("a port");
    model.says(None, script_of(script));
    model
}

pub(crate) fn script_of(script: &str) -> Vec<Answer> {
    answers(script).expect("a script")
}

/// A connection on which a request has been written.
pub(crate) async fn ask(model: &FakeModel, method: &str, path: &str, body: &str) -> TcpStream {
    let address = model.base().strip_prefix("http://").expect("http");
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer s3cret\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.expect("written");
    stream
}

/// What came back.
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
    /// The transfer came to its proper end.
    pub(crate) whole: bool,
}

pub(crate) async fn post(model: &FakeModel, path: &str, body: &Value) -> Answered {
    read(ask(model, "POST", path, &body.to_string()).await).await
}

pub(crate) async fn get(model: &FakeModel, path: &str) -> Answered {
    read(ask(model, "GET", path, "").await).await
}

pub(crate) async fn read(mut stream: TcpStream) -> Answered {
    let mut bytes = Vec::new();
    // A connection that is cut may end in a reset; what came before counts.
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).expect("UTF-8");
    let (head, rest) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.get(9..12).and_then(|digits| digits.parse().ok());
    let head = head.to_lowercase();
    let (body, whole) = if head.contains("transfer-encoding: chunked") {
        unchunked(rest)
    } else {
        (rest.to_owned(), true)
    };
    Answered {
        status: status.unwrap_or(0),
        head,
        body,
        whole,
    }
}

fn unchunked(mut rest: &str) -> (String, bool) {
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

impl Answered {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// The events: name and data. Each must be framed just so.
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

    /// The data of events that have no name.
    pub(crate) fn unnamed(&self) -> Vec<Value> {
        let events = self.events().into_iter();
        events
            .map(|(name, data)| {
                assert_eq!(name, None);
                data
            })
            .collect()
    }

    /// The data of events whose names are their types.
    pub(crate) fn named(&self) -> Vec<Value> {
        let events = self.events().into_iter();
        events
            .map(|(name, data)| {
                assert_eq!(name.as_deref(), data["type"].as_str());
                data
            })
            .collect()
    }
}
