//! Deserializes the events of a stream, borrowed.

use crate::{dialect::StreamError, json_str::JsonStr};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Any event, as one flat struct that is deserialized in one pass. Unknown events may use the same names for other
/// types, so most values stay unparsed until the type of the event is known.
#[derive(Deserialize)]
pub(super) struct StreamEvent<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<JsonStr<'a>>,
    /// Position of the item in the output. Item ids are no substitute: some servers change them between events
    /// (quirk 38).
    output_index: Option<i64>,
    pub(super) content_index: Option<i64>,
    pub(super) summary_index: Option<i64>,
    pub(super) delta: Option<&'a RawValue>,
    pub(super) arguments: Option<&'a RawValue>,
    pub(super) item: Option<&'a RawValue>,
    pub(super) response: Option<&'a RawValue>,
    pub(super) error: Option<&'a RawValue>,
}

impl StreamEvent<'_> {
    pub(super) fn output_index(&self) -> i64 {
        self.output_index.unwrap_or_default()
    }
}

/// Type of an output item.
#[derive(Deserialize)]
pub(super) struct ItemHead<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<JsonStr<'a>>,
}

/// Text of the model.
#[derive(Deserialize)]
pub(super) struct MessageItem<'a> {
    #[serde(borrow)]
    pub(super) content: Option<Vec<ItemPart<'a>>>,
    /// `commentary` or `final_answer`; to be sent back (quirk 31).
    pub(super) phase: Option<JsonStr<'a>>,
}

#[derive(Deserialize)]
pub(super) struct ReasoningItem<'a> {
    #[serde(borrow)]
    pub(super) summary: Option<&'a RawValue>,
    /// Reasoning itself, of models that show it.
    pub(super) content: Option<Vec<ItemPart<'a>>>,
    pub(super) encrypted_content: Option<JsonStr<'a>>,
}

/// Part of a message or of reasoning.
#[derive(Deserialize)]
pub(super) struct ItemPart<'a> {
    #[serde(borrow)]
    pub(super) text: Option<JsonStr<'a>>,
    pub(super) refusal: Option<JsonStr<'a>>,
}

#[derive(Deserialize)]
pub(super) struct CallItem<'a> {
    #[serde(borrow)]
    pub(super) call_id: Option<JsonStr<'a>>,
    pub(super) name: Option<JsonStr<'a>>,
    pub(super) arguments: Option<&'a RawValue>,
}

/// The response, as the first event describes it.
#[derive(Default, Deserialize)]
pub(super) struct StartedResponse<'a> {
    #[serde(borrow)]
    pub(super) id: Option<JsonStr<'a>>,
}

/// The response, as the last event describes it.
#[derive(Deserialize)]
pub(super) struct FinalResponse<'a> {
    #[serde(borrow)]
    pub(super) status: Option<JsonStr<'a>>,
    pub(super) model: Option<JsonStr<'a>>,
    pub(super) incomplete_details: Option<IncompleteDetails<'a>>,
    pub(super) output: Option<&'a RawValue>,
    pub(super) usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct IncompleteDetails<'a> {
    #[serde(borrow)]
    pub(super) reason: Option<JsonStr<'a>>,
}

/// Returns the text of a fragment; `None` for a missing one.
pub(super) fn fragment(raw: Option<&RawValue>) -> Result<Option<JsonStr<'_>>, StreamError> {
    match raw {
        Some(raw) => Ok(serde_json::from_str(raw.get())?),
        None => Ok(None),
    }
}

/// Returns the text of complete arguments. Some servers send the object itself instead of its text.
pub(super) fn arguments_text(raw: &RawValue) -> Result<Cow<'_, str>, StreamError> {
    match raw.get().starts_with('{') {
        true => Ok(Cow::Borrowed(raw.get())),
        false => Ok(fragment(Some(raw))?
            .map(JsonStr::into_cow)
            .unwrap_or_default()),
    }
}
