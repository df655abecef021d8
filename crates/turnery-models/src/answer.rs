//! Answer: what the fragments of a stream add up to, in the order the model gave them.

use serde_json::Value;
use std::{borrow::Cow, collections::HashSet, sync::Arc};
use turnery_engine::{CallId, Content, LlmMessage, ModelDelta, ToolCall};

/// One block of an answer while it grows.
#[derive(Debug)]
pub(crate) enum Part {
    Text(String),
    Thinking {
        text: String,
        signature: Option<String>,
    },
    Call {
        id: CallId,
        name: String,
        args: String,
    },
    Opaque(Value),
}

/// The blocks of an answer. Their places are the block numbers of the fragments.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    parts: Vec<Part>,
    /// The next prose begins a block of its own.
    is_sealed: bool,
}

impl Parts {
    /// Add a block; its place is returned.
    pub(crate) fn open(&mut self, part: Part) -> usize {
        self.parts.push(part);
        self.parts.len() - 1
    }

    pub(crate) fn get(&mut self, at: usize) -> Option<&mut Part> {
        self.parts.get_mut(at)
    }

    pub(crate) fn last(&mut self) -> Option<&mut Part> {
        self.parts.last_mut()
    }

    /// The next prose begins a block of its own.
    pub(crate) fn seal(&mut self) {
        self.is_sealed = true;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Append prose to the last block, or to a new one.
    pub(crate) fn text(&mut self, text: &str, out: &mut Vec<ModelDelta>) {
        if text.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Text(so_far)) if !self.is_sealed => so_far.push_str(text),
            Some(Part::Text(_) | Part::Thinking { .. } | Part::Call { .. } | Part::Opaque(_))
            | None => self.parts.push(Part::Text(text.to_owned())),
        }
        self.is_sealed = false;
        out.push(ModelDelta::Text {
            block: number(self.parts.len() - 1),
            text: text.to_owned(),
        });
    }

    /// Append reasoning to the last block, or to a new one.
    pub(crate) fn thinking(&mut self, text: &str, out: &mut Vec<ModelDelta>) {
        if text.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Thinking { text: so_far, .. }) => so_far.push_str(text),
            Some(Part::Text(_) | Part::Call { .. } | Part::Opaque(_)) | None => {
                self.parts.push(Part::Thinking {
                    text: text.to_owned(),
                    signature: None,
                });
            }
        }
        out.push(ModelDelta::Thinking {
            block: number(self.parts.len() - 1),
            text: text.to_owned(),
        });
    }

    /// Append to the arguments of the call at `at`.
    pub(crate) fn args(&mut self, at: usize, fragment: &str, out: &mut Vec<ModelDelta>) {
        let Some(Part::Call { name, args, .. }) = self.parts.get_mut(at) else {
            return;
        };
        if fragment.is_empty() {
            return;
        }
        args.push_str(fragment);
        out.push(ModelDelta::ToolCallArgs {
            block: number(at),
            name: name.clone(),
            fragment: fragment.to_owned(),
        });
    }

    /// The settled blocks. `provider` is whose opaque ones they are.
    pub(crate) fn settle(self, provider: &str) -> Vec<Content> {
        let settle = |part| match part {
            Part::Text(text) => Content::Text { text },
            Part::Thinking { text, signature } => Content::Thinking { text, signature },
            Part::Call { id, name, args } => Content::ToolCall(ToolCall {
                call_id: id,
                name,
                args: Arc::new(arguments(args)),
            }),
            Part::Opaque(value) => Content::Opaque {
                provider: provider.to_owned(),
                value,
            },
        };
        self.parts.into_iter().map(settle).collect()
    }
}

/// The arguments of a call: none at all is an empty object, and what is not JSON is kept as text.
fn arguments(text: String) -> Value {
    if text.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// Arguments as the APIs want them back: an object. What the model wrote instead goes inside one.
pub(crate) fn object(args: &Value) -> Cow<'_, Value> {
    match args {
        Value::Object(_) => Cow::Borrowed(args),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Cow::Owned(serde_json::json!({ "not_an_object": args }))
        }
    }
}

/// A place as a block number.
fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Sees to it that call ids are unique in the answer and in the history that the model was sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallIds {
    used: HashSet<CallId>,
}

impl CallIds {
    /// The ids that `history` uses.
    pub(crate) fn of(history: &[Arc<LlmMessage>]) -> Self {
        let calls = history.iter().flat_map(|message| message.message.calls());
        Self {
            used: calls.map(|call| call.call_id.clone()).collect(),
        }
    }

    /// The id of a new call: the provider's own if it gave one that is free, else `call_<n>`.
    pub(crate) fn take(&mut self, given: &str) -> CallId {
        if !given.is_empty() && self.used.insert(given.into()) {
            return given.into();
        }
        let mut n = self.used.len() + 1;
        loop {
            let id = CallId::from(format!("call_{n}"));
            if self.used.insert(id.clone()) {
                return id;
            }
            n += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_never_repaired() {
        assert_eq!(arguments(r#"{"a":1}"#.to_owned()), json!({"a": 1}));
        assert_eq!(arguments(r#"{"a":"#.to_owned()), json!(r#"{"a":"#));
        assert_eq!(arguments(" ".to_owned()), json!({}));
        assert_eq!(arguments("[1]".to_owned()), json!([1]));
    }

    #[test]
    fn ids_are_kept_when_free_and_minted_otherwise() {
        let mut ids = CallIds::default();
        let taken: Vec<String> = ["a", "a", "", "call_4", ""]
            .map(|given| ids.take(given).to_string())
            .to_vec();
        assert_eq!(taken, ["a", "call_2", "call_3", "call_4", "call_5"]);
    }
}
