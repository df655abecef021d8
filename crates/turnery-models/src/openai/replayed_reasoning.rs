//! Stores in an opaque block the details of a response's reasoning that are needed to send it back unchanged.

use super::quirks::ReasoningField;
use serde_json::{Map, Value};

const FIELD: &str = "reasoning_field";
const DETAILS: &str = "reasoning_details";

/// Form of the reasoning of one response.
#[derive(Debug, Default)]
pub(super) struct ReplayedReasoning {
    /// Field in which the reasoning came, if it is not the usual one of the host.
    pub(super) field: Option<ReasoningField>,
    /// Entries of `reasoning_details`.
    pub(super) details: Option<Value>,
}

impl ReplayedReasoning {
    /// Returns the value of the opaque block; `None` if there is nothing to keep.
    pub(super) fn into_value(self) -> Option<Value> {
        let mut value = Map::new();
        if let Some(field) = self.field {
            value.insert(FIELD.to_owned(), Value::from(field.as_str()));
        }
        if let Some(details) = self.details {
            value.insert(DETAILS.to_owned(), details);
        }
        (!value.is_empty()).then_some(Value::Object(value))
    }
}

/// Returns the field in an opaque block.
pub(super) fn field_in(value: &Value) -> Option<ReasoningField> {
    ReasoningField::from_name(value.get(FIELD)?.as_str()?)
}

/// Returns the entries of `reasoning_details` in an opaque block.
pub(super) fn details_in(value: &Value) -> &[Value] {
    let details = value.get(DETAILS).and_then(Value::as_array);
    details.map_or(&[], Vec::as_slice)
}
