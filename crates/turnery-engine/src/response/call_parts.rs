//! Ids and arguments of tool calls, from what a model sent.

use crate::{CallId, LlmMessage};
use serde_json::{Map, Value};
use std::{collections::HashSet, sync::Arc};

/// Makes the ids of calls unique within a response and the history before it.
#[derive(Clone, Debug, Default)]
pub struct CallIds {
    used: HashSet<CallId>,
    /// Ids made from smaller numbers are in use.
    next: usize,
}

impl CallIds {
    /// Collects the ids that `history` uses.
    #[must_use]
    pub fn from_history(history: &[Arc<LlmMessage>]) -> Self {
        let calls = history.iter().flat_map(|message| message.message.calls());
        Self {
            used: calls.map(|call| call.call_id.clone()).collect(),
            next: 0,
        }
    }

    /// Returns true if no id is used.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// Returns the id of a new call: the provider's id if it is unused, else `call_<n>`.
    pub fn take(&mut self, given: &str) -> CallId {
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

/// Parses the arguments of a call: blank text becomes an empty object. Text that is not JSON stays a string, so that
/// the tool can report the problem.
#[must_use]
pub fn parse_call_args(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(Map::new());
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn invalid_arguments_are_kept_as_text() {
        assert_eq!(parse_call_args(r#"{"a":1}"#), json!({"a": 1}));
        assert_eq!(parse_call_args(r#"{"a":"#), json!(r#"{"a":"#));
        assert_eq!(parse_call_args(" "), json!({}));
        assert_eq!(parse_call_args("[1]"), json!([1]));
    }

    #[test]
    fn provider_ids_are_kept_when_free_else_generated() {
        let mut ids = CallIds::default();
        let taken: Vec<String> = ["a", "a", "", "call_4", ""]
            .map(|given| ids.take(given).to_string())
            .to_vec();
        assert_eq!(taken, ["a", "call_2", "call_3", "call_4", "call_5"]);
    }
}
