//! Parses tool calls in the formats of all vendors.

use super::fields::{JsonObject, first_text};
use crate::{CallId, ResponseError, ToolCall};
use serde_json::{Map, Value};
use std::{collections::HashSet, sync::Arc};

/// Unparsed call in a vendor's format.
pub(super) struct RawCall<'a> {
    /// Path of the call, for errors.
    at: String,
    call: &'a Value,
}

impl<'a> RawCall<'a> {
    pub(super) fn new(at: String, call: &'a Value) -> Self {
        Self { at, call }
    }

    /// Returns each call of a list; a value that is not a list becomes one malformed call.
    pub(super) fn list_from(at: &str, calls: &'a Value) -> Vec<Self> {
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

/// Parser for the calls of one response, which makes their ids unique.
#[derive(Default)]
pub(super) struct CallParser {
    ids: HashSet<CallId>,
}

impl CallParser {
    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(super) fn parse_call(&mut self, raw: RawCall<'_>) -> Result<ToolCall, ResponseError> {
        let RawCall { at, call } = raw;
        let outer = call
            .as_object()
            .ok_or_else(|| ResponseError::malformed(&at, "a call of a tool", call))?;
        // OpenAI nests the name and the arguments one level deeper.
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
            call_id: self.allocate_id(outer),
            name: name.to_owned(),
            args: Arc::new(parse_arguments(args.unwrap_or(&Value::Null))),
        })
    }

    /// Returns the given id if it is unused, else a generated one.
    fn allocate_id(&mut self, call: &JsonObject) -> CallId {
        let given = first_text(call, &["call_id", "id"]).unwrap_or_default();
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

/// Parses the arguments; text that is not JSON stays a string, so that the tool can report the problem.
fn parse_arguments(args: &Value) -> Value {
    match args {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
        Value::String(text) => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => args.clone(),
    }
}
