//! Parses tool calls in the formats of all vendors.

use super::fields::first_text;
use crate::{CallIds, ResponseError, ToolCall, parse_call_args};
use serde_json::Value;

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

    /// Parses the call and gives it an id that is not in `ids`.
    pub(super) fn parse(self, ids: &mut CallIds) -> Result<ToolCall, ResponseError> {
        let Self { at, call } = self;
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
        let args = match args {
            None | Some(Value::Null) => parse_call_args(""),
            Some(Value::String(text)) => parse_call_args(text),
            Some(args) => args.clone(),
        };
        Ok(ToolCall::new(
            ids.take(first_text(outer, &["call_id", "id"]).unwrap_or_default()),
            name,
            args,
        ))
    }
}
