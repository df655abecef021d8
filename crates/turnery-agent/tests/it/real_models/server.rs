//! A model server on loopback that plays scripted responses and keeps the requests. It refuses those that the real API
//! would refuse.

use super::dialect::{Dialect, Ending, ScriptedResponse};
use model_api_rules::{ApiRequest, IssuedReasoning, judge, record};
use serde_json::Value;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
};
use turnery_models::ProviderConfig;

/// A request, and whether its response was complete and had text.
#[derive(Clone, Debug)]
pub(crate) struct RecordedRequest {
    pub(crate) body: String,
    pub(crate) is_answered: bool,
    /// Signature of the response, if it was complete and had reasoning.
    pub(crate) signature: Option<String>,
}

/// A running server.
#[derive(Clone)]
pub(crate) struct ModelServer {
    pub(crate) dialect: &'static Dialect,
    base_url: String,
    /// Responses in order; "done" follows them.
    pub(crate) script: Arc<Mutex<VecDeque<ScriptedResponse>>>,
    pub(crate) requests: Arc<Mutex<Vec<RecordedRequest>>>,
    /// Notified when a response is held.
    pub(crate) held: Arc<Notify>,
    /// Reasoning of earlier responses.
    issued: Arc<Mutex<IssuedReasoning>>,
    refusals: Arc<Mutex<Vec<String>>>,
}

impl ModelServer {
    pub(crate) async fn start(dialect: &'static Dialect) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Self {
            dialect,
            base_url: format!("http://{address}{}", dialect.base_path),
            script: Arc::default(),
            requests: Arc::default(),
            held: Arc::default(),
            issued: Arc::default(),
            refusals: Arc::default(),
        };
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serving.clone().respond(socket));
            }
        });
        server
    }

    /// Returns the server as the provider called `name`.
    pub(crate) fn provider(&self, name: &str) -> ProviderConfig {
        ProviderConfig {
            key: Some("sk-test".to_owned().into()),
            key_hint: "ACME_KEY".to_owned(),
            ..ProviderConfig::new(name, self.dialect.api, self.base_url.clone())
        }
    }

    pub(crate) fn play(&self, responses: impl IntoIterator<Item = ScriptedResponse>) {
        *self.script.lock().unwrap() = responses.into_iter().collect();
    }

    pub(crate) fn bodies(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests
            .iter()
            .map(|request| request.body.clone())
            .collect()
    }

    /// Fails if a request was refused.
    pub(crate) fn assert_nothing_refused(&self) {
        let refusals = self.refusals.lock().unwrap();
        assert!(refusals.is_empty(), "the real API refuses: {refusals:#?}");
    }

    /// Judges a request. Returns the signature of the response, or the body of the refusal.
    fn judge(&self, head: &str, body: &str) -> Result<String, String> {
        let path = head.split_ascii_whitespace().nth(1).unwrap_or_default();
        let body: Value = serde_json::from_str(body).unwrap();
        let mut issued = self.issued.lock().unwrap();
        let request = ApiRequest {
            headers: head,
            issued: Some(&issued),
            ..ApiRequest::new(self.dialect.format, path, &body)
        };
        let model = request.model().to_owned();
        match judge(&request) {
            Ok(()) => {
                record(&request).unwrap();
                Ok(issued.issue(&model, &body))
            }
            Err(violation) => {
                let error = violation.to_body(self.dialect.format);
                self.refusals
                    .lock()
                    .unwrap()
                    .push(format!("{error} for {body}"));
                Err(error)
            }
        }
    }

    async fn respond(self, mut socket: TcpStream) {
        let (head, body) = read_request(&mut socket).await;
        let signature = match self.judge(&head, &body) {
            Ok(signature) => signature,
            Err(error) => {
                let _ = socket.write_all(bad_request(&error).as_bytes()).await;
                return;
            }
        };
        let response = self.script.lock().unwrap().pop_front();
        let response = response.unwrap_or_else(|| ScriptedResponse::text("done"));
        let ending = response.ending;
        let is_complete = ending == Ending::Complete;
        let is_signed = is_complete && response.thinking.is_some();
        self.requests.lock().unwrap().push(RecordedRequest {
            body,
            is_answered: is_complete && !response.text.trim().is_empty(),
            signature: is_signed.then(|| signature.clone()),
        });
        let reply = match ending {
            Ending::Complete | Ending::Cut | Ending::Held => format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{}",
                response.render(self.dialect, &signature)
            ),
            Ending::Overflow => bad_request(
                r#"{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"prompt is too long: 9 tokens > 8 maximum"}}"#,
            ),
        };
        // The client may have hung up.
        let _ = socket.write_all(reply.as_bytes()).await;
        if ending == Ending::Held {
            self.held.notify_one();
            while socket.read(&mut [0; 64]).await.is_ok_and(|n| n > 0) {}
        }
    }
}

fn bad_request(error: &str) -> String {
    format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{error}",
        error.len()
    )
}

/// Returns the head and the body.
async fn read_request(socket: &mut TcpStream) -> (String, String) {
    let mut bytes = Vec::new();
    loop {
        let n = socket.read_buf(&mut bytes).await.unwrap();
        assert!(n > 0, "the request broke off");
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length: ")?
                .parse()
                .ok()
        });
        if Some(body.len()) == length {
            return (head.to_owned(), body.to_owned());
        }
    }
}
