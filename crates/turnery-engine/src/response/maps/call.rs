//! Call: one tool call as it stands in a map, and its way into our form.

use super::{super::ResponseError, text_at};
use crate::{CallId, ToolCall};
use serde_json::{Map, Value};
use std::{collections::HashSet, sync::Arc};

/// A call in whatever form a vendor has for it.
pub(super) struct RawCall<'a> {
    /// Where it stands.
    at: String,
    call: &'a Value,
}

impl<'a> RawCall<'a> {
    pub(super) fn new(at: String, call: &'a Value) -> Self {
        Self { at, call }
    }

    /// Each of a list of calls; what is no list is one call that makes no sense.
    pub(super) fn all(at: &str, calls: &'a Value) -> Vec<Self> {
        match calls {
            Value::Null => Vec::new(),
            Value::Array(calls) => calls
                .iter()
                .enumerate()
                .map(|(n, call)| Self::new(format!("{at}[{n}]"), call))
                .collect(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                vec![Self::new(at.to_owned(), calls)]
            }
        }
    }
}

/// The calls of one answer: their ids are unique in it.
#[derive(Default)]
pub(super) struct Calls {
    ids: HashSet<CallId>,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(super) fn settle(&mut self, raw: RawCall<'_>) -> Result<ToolCall, ResponseError> {
        let RawCall { at, call } = raw;
        let outer = call
            .as_object()
            .ok_or_else(|| ResponseError::malformed(&at, "a call of a tool", call))?;
        // OpenAI puts the name and the arguments one level down.
        let inner = outer
            .get("function")
            .and_then(Value::as_object)
            .unwrap_or(outer);
        let name = inner.get("name").unwrap_or(&Value::Null);
        let name = name
            .as_str()
            .filter(|name| !name.is_empty())
            .ok_or_else(|| {
                ResponseError::malformed(format!("{at}.name"), "the name of a tool", name)
            })?;
        let args = ["arguments", "args", "input"]
            .iter()
            .find_map(|key| inner.get(*key));
        Ok(ToolCall {
            call_id: self.id(outer),
            name: name.to_owned(),
            args: Arc::new(arguments(args.unwrap_or(&Value::Null))),
        })
    }

    /// The id that it came with if that is free, else one of ours.
    fn id(&mut self, call: &Map<String, Value>) -> CallId {
        let given = text_at(call, &["call_id", "id"]).unwrap_or_default();
        if !given.is_empty() && self.ids.insert(given.into()) {
            return given.into();
        }
        let mut n = self.ids.len() + 1;
        loop {
            let id = CallId::from(format!("call_{n}"));
            if self.ids.insert(id.clone()) {
                return id;
            }
            n += 1;
        }
    }
}

/// The arguments as a value: what is not JSON stays text, so that the tool can say what is wrong.
fn arguments(args: &Value) -> Value {
    match args {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
        Value::String(text) => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => args.clone(),
    }
}
