//! Records the agent's requests to the fake model, and their outcome.

use super::{
    request::{Api, ModelRequest},
    script::ScriptTool,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// Request of the agent, with its outcome.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers without those that hold keys; names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Body: JSON, or else the text.
    pub body: Value,
    /// Parsed model request; `None` for other paths.
    pub request: Option<ModelRequest>,
    /// Role of the request.
    pub role: ExchangeRole,
    /// HTTP status; `None` until the request is answered.
    pub status: Option<u16>,
    /// Names of the agent's tools that the response calls.
    pub called_tools: Vec<String>,
    /// Script tools that these calls stand for.
    pub served_tools: Vec<ScriptTool>,
    /// Script tools without a counterpart among the offered tools; the response contains a text instead.
    pub missing_tools: Vec<ScriptTool>,
    /// Progress of the response.
    pub state: ExchangeState,
}

/// Role of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExchangeRole {
    /// Request of the conversation, answered with this response of the script, counted from 0.
    Main(usize),
    /// Request of the conversation after the end of the script.
    AfterScript,
    /// Request outside the conversation: a title, a summary, a probe.
    Side,
    /// Request other than for a completion, such as counting tokens or listing models.
    Service,
    /// Request for an unknown path.
    Unknown,
    /// Request that cannot be parsed, with the reason.
    Unreadable(String),
}

/// Progress of the response to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeState {
    /// In progress.
    Open,
    /// Sent completely.
    Answered,
    /// Interrupted by the agent, which closed the connection.
    Dropped,
    /// Interrupted by the script, which closed the connection.
    Cut,
}

/// Names of headers that hold keys.
const SECRET_HEADERS: &[&str] = &[
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
    "proxy-authorization",
];

impl Exchange {
    /// Returns the API of a model request.
    #[must_use]
    pub fn api(&self) -> Option<Api> {
        self.request.as_ref().map(|request| request.api)
    }

    /// Returns true if the request belongs to the conversation.
    #[must_use]
    pub fn is_main(&self) -> bool {
        match self.role {
            ExchangeRole::Main(_) | ExchangeRole::AfterScript => true,
            ExchangeRole::Side
            | ExchangeRole::Service
            | ExchangeRole::Unknown
            | ExchangeRole::Unreadable(_) => false,
        }
    }

    pub(super) fn new(method: String, path: String, headers: &hyper::HeaderMap) -> Self {
        let pairs = headers
            .iter()
            .filter(|(name, _)| !SECRET_HEADERS.contains(&name.as_str()));
        Self {
            method,
            path: strip_key(&path),
            headers: pairs
                .map(|(name, value)| {
                    let value = String::from_utf8_lossy(value.as_bytes());
                    (name.as_str().to_owned(), value.into_owned())
                })
                .collect(),
            body: Value::Null,
            request: None,
            role: ExchangeRole::Unknown,
            status: None,
            called_tools: Vec::new(),
            served_tools: Vec::new(),
            missing_tools: Vec::new(),
            state: ExchangeState::Open,
        }
    }
}

/// Removes Gemini's key from the query.
fn strip_key(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else {
        return path.to_owned();
    };
    let kept: Vec<&str> = query
        .split('&')
        .filter(|pair| !pair.starts_with("key="))
        .collect();
    if kept.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", kept.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_not_recorded() {
        let mut headers = hyper::HeaderMap::new();
        headers.insert("x-api-key", "s3cret".parse().unwrap());
        headers.insert("authorization", "Bearer s3cret".parse().unwrap());
        headers.insert("traceparent", "00-1".parse().unwrap());
        let exchange = Exchange::new(
            "POST".to_owned(),
            "/a?alt=sse&key=s3cret".to_owned(),
            &headers,
        );
        assert!(!format!("{exchange:?}").contains("s3cret"));
        assert_eq!(exchange.headers["traceparent"], "00-1");
        assert_eq!(exchange.path, "/a?alt=sse");
        assert_eq!(strip_key("/a?key=s3cret"), "/a");
    }
}
