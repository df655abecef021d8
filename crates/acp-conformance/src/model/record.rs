//! Record: what the agent asked of the fake model, and what became of it.

use super::{
    asked::{Api, Asked},
    script::Tool,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// One request of the agent, in the order they came.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// GET, POST.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Its headers, but for those that hold keys; names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body: JSON, or else the text.
    pub body: Value,
    /// What it asks for, if it asks a model.
    pub asked: Option<Asked>,
    /// What part it plays.
    pub role: Role,
    /// The status it was answered with; none as long as it has no answer.
    pub status: Option<u16>,
    /// The tools of the agent that the answer calls.
    pub calls: Vec<String>,
    /// The tools of the script that these stand for.
    pub served: Vec<Tool>,
    /// The tools of the script that the agent offers nothing for; the answer says so in a text.
    pub missing: Vec<Tool>,
    /// What became of it.
    pub fate: Fate,
}

/// What part a request plays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is one of the conversation, and got this answer of the script, counted from 0.
    Main(usize),
    /// It is one of the conversation, when the script had been said.
    Beyond,
    /// It is beside the conversation: a title, a summary, a probe.
    Side,
    /// It counts tokens or lists models.
    Service,
    /// There is nothing at this path.
    Unknown,
    /// It cannot be read, for this reason.
    Broken(String),
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is being answered.
    Open,
    /// It got all of its answer.
    Answered,
    /// The agent let go of the connection before.
    Dropped,
    /// The script closed the connection.
    Cut,
}

/// Headers that hold a key.
const SECRET: &[&str] = &[
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
    "proxy-authorization",
];

impl Exchange {
    /// In which API, if it asks a model.
    #[must_use]
    pub fn api(&self) -> Option<Api> {
        self.asked.as_ref().map(|asked| asked.api)
    }

    /// It belongs to the conversation.
    #[must_use]
    pub fn is_main(&self) -> bool {
        match self.role {
            Role::Main(_) | Role::Beyond => true,
            Role::Side | Role::Service | Role::Unknown | Role::Broken(_) => false,
        }
    }

    pub(super) fn new(method: String, path: String, headers: &hyper::HeaderMap) -> Self {
        let shown = headers
            .iter()
            .filter(|(name, _)| !SECRET.contains(&name.as_str()));
        Self {
            method,
            path: without_key(&path),
            headers: shown
                .map(|(name, value)| {
                    let value = String::from_utf8_lossy(value.as_bytes());
                    (name.as_str().to_owned(), value.into_owned())
                })
                .collect(),
            body: Value::Null,
            asked: None,
            role: Role::Unknown,
            status: None,
            calls: Vec::new(),
            served: Vec::new(),
            missing: Vec::new(),
            fate: Fate::Open,
        }
    }
}

/// Gemini's key may stand in the query.
fn without_key(path: &str) -> String {
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
    fn no_key_is_recorded() {
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
        assert_eq!(without_key("/a?key=s3cret"), "/a");
    }
}
