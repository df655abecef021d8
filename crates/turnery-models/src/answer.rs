//! Answer: what the fragments of a stream add up to, in the order the model gave them.

use serde_json::Value;
use std::{borrow::Cow, collections::HashSet, sync::Arc};
use turnery_engine::{AnswerSize, CallId, Content, LlmMessage, ModelDelta, ToolCall};

/// How much of a tool's name is shown beside its arguments. Unit: characters. Providers allow 128 at most.
const LONGEST_NAME: usize = 256;

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
    size: AnswerSize,
}

impl Parts {
    /// Add a block; its place is returned.
    pub(crate) fn open(&mut self, part: Part) -> usize {
        self.size.add(AnswerSize::BLOCK);
        if let Part::Call { id, name, .. } = &part {
            self.size.add_call();
            self.size.add(id.as_str().len().saturating_add(name.len()));
        }
        self.parts.push(part);
        self.parts.len() - 1
    }

    /// The size of all blocks so far.
    pub(crate) fn size(&self) -> AnswerSize {
        self.size
    }

    /// Counts what is kept of the answer and is no fragment: signatures, opaque blocks.
    pub(crate) fn count(&mut self, bytes: usize) {
        self.size.add(bytes);
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
            | None => {
                self.open(Part::Text(text.to_owned()));
            }
        }
        self.size.add(text.len());
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
                self.open(Part::Thinking {
                    text: text.to_owned(),
                    signature: None,
                });
            }
        }
        self.size.add(text.len());
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
        self.size.add(fragment.len());
        out.push(ModelDelta::ToolCallArgs {
            block: number(at),
            name: shown_name(name),
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

/// The name of a tool beside a fragment of its arguments: a long one is cut, since every fragment has it.
fn shown_name(name: &str) -> String {
    match name.char_indices().nth(LONGEST_NAME) {
        Some((cut, _)) => name[..cut].to_owned(),
        None => name.to_owned(),
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
    /// Ids made from smaller numbers are used.
    next: usize,
}

impl CallIds {
    /// The ids that `history` uses.
    pub(crate) fn of(history: &[Arc<LlmMessage>]) -> Self {
        let calls = history.iter().flat_map(|message| message.message.calls());
        Self {
            used: calls.map(|call| call.call_id.clone()).collect(),
            next: 0,
        }
    }

    /// The id of a new call: the provider's own if it gave one that is free, else `call_<n>`.
    pub(crate) fn take(&mut self, given: &str) -> CallId {
        if !given.is_empty() && self.used.insert(given.into()) {
            return given.into();
        }
        self.next = self.next.max(self.used.len() + 1);
        loop {
            let id = CallId::from(format!("call_{}", self.next));
            self.next += 1;
            if self.used.insert(id.clone()) {
                return id;
            }
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
