//! Remembers the reasoning that a fake server has issued, so that it can be judged when it comes back.

use serde_json::{Map, Value};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of the next signature. No two servers of a process issue the same.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Reasoning of earlier responses of one server.
#[derive(Clone, Debug, Default)]
pub struct IssuedReasoning {
    signatures: Vec<IssuedSignature>,
}

#[derive(Clone, Debug)]
struct IssuedSignature {
    signature: String,
    model: String,
    /// System prompt, tools and messages of the request.
    context: Value,
}

impl IssuedReasoning {
    /// Returns a new signature for the response of `model` to a request with this body. It is valid base64 and starts
    /// with `c2lnbmVk`, which is `signed`.
    pub fn issue(&mut self, model: &str, body: &Value) -> String {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let signature = format!("c2lnbmVk{number:08}");
        self.signatures.push(IssuedSignature {
            signature: signature.clone(),
            model: model.to_owned(),
            context: context_before(body, usize::MAX),
        });
        signature
    }

    /// Returns true if `model` issued the signature.
    pub(crate) fn is_of(&self, signature: &str, model: &str) -> bool {
        let mut found = self.signatures.iter();
        found.any(|issued| issued.signature == signature && issued.model == model)
    }

    /// Returns true if the signature was issued after exactly the first `count` messages of `body`.
    pub(crate) fn is_bound_to(&self, signature: &str, body: &Value, count: usize) -> bool {
        let mut found = self.signatures.iter();
        found.any(|issued| {
            issued.signature == signature && issued.context == context_before(body, count)
        })
    }
}

/// Returns the parts of a body of Anthropic Messages to which reasoning is bound: the system prompt, the tools and the
/// first `count` messages, without cache marks and earlier reasoning
/// (<https://platform.claude.com/docs/en/build-with-claude/preserved-thinking/prefix-checks>).
fn context_before(body: &Value, count: usize) -> Value {
    let mut context = Map::new();
    for name in ["system", "tools"] {
        context.insert(
            name.to_owned(),
            strip(body.get(name).unwrap_or(&Value::Null)),
        );
    }
    let messages = crate::json::list(body, "messages").iter().take(count);
    context.insert("messages".to_owned(), messages.map(strip).collect());
    Value::Object(context)
}

/// Returns a value without cache marks and reasoning.
fn strip(value: &Value) -> Value {
    let is_bound = |value: &&Value| {
        let kind = crate::json::text(value, "type");
        !matches!(kind, "thinking" | "redacted_thinking")
    };
    match value {
        Value::Array(items) => items.iter().filter(is_bound).map(strip).collect(),
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| *name != "cache_control")
            .map(|(name, value)| (name.clone(), strip(value)))
            .collect(),
        other => other.clone(),
    }
}
