//! Reads responses: events of output items, which are matched by their position in the output.

mod items;

use super::{
    event::{FinalResponse, StartedResponse, StreamEvent, arguments_text, fragment},
    usage::parse_usage,
};
use crate::{
    dialect::{self, StreamError, StreamStatus},
    errors::ProviderError,
};
use items::{OutputItems, PartId, PartKind};
use serde_json::value::RawValue;
use turnery_engine::{CallIds, ModelDelta, ModelStop, Response, ResponseSize, Usage};

/// Reader of one response.
pub(crate) struct ResponsesReader {
    provider: String,
    model: String,
    /// Id of the response, once it has started.
    id: Option<String>,
    items: OutputItems,
    usage: Option<Usage>,
    ending: Option<Ending>,
}

/// End of a response, as its last event describes it.
struct Ending {
    /// Status of the response, or the reason why it is incomplete.
    word: String,
    is_incomplete: bool,
}

impl ResponsesReader {
    pub(super) fn new(provider: &str, model: &str, ids: CallIds) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            id: None,
            items: OutputItems::new(ids),
            usage: None,
            ending: None,
        }
    }

    /// Accepts a repeated start of the same response. The start of another one means that two responses are mixed, so that
    /// no call of them may run (quirk 46).
    fn start(&mut self, raw: &RawValue) -> Result<(), StreamError> {
        let started: StartedResponse<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
        let Some(id) = started.id.filter(|id| !id.is_empty()) else {
            return Ok(());
        };
        match &self.id {
            Some(first) if **first != *id => Err(StreamError::Violation(format!(
                "the response {:?} starts within the response {first:?}",
                &*id
            ))),
            Some(_) => Ok(()),
            None => {
                self.id = Some(id.into_owned());
                Ok(())
            }
        }
    }

    /// Appends a fragment to a part of an item.
    fn extend(
        &mut self,
        event: &StreamEvent<'_>,
        kind: PartKind,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        let index = match kind {
            PartKind::Summary => event.summary_index,
            PartKind::Text | PartKind::Refusal | PartKind::Reasoning => event.content_index,
        };
        let part = PartId {
            kind,
            index: index.unwrap_or_default(),
        };
        match fragment(event.delta)? {
            Some(text) => self.items.append(event.output_index(), part, &text, out),
            None => Ok(()),
        }
    }

    /// Reads the event that ends the response. `status` is the status that the type of the event stands for.
    fn finish(
        &mut self,
        status: &str,
        raw: Option<&RawValue>,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        let text = raw.map_or("{}", RawValue::get);
        let response: FinalResponse<'_> = serde_json::from_str(text)?;
        let status = response.status.as_deref().unwrap_or(status);
        if matches!(status, "failed" | "cancelled") {
            return Err(reported_error(text));
        }
        if let Some(model) = response.model.filter(|model| !model.is_empty()) {
            self.model = model.into_owned();
        }
        self.usage = response.usage.and_then(parse_usage);
        // Some proxies drop all events but the last.
        if let Some(output) = response.output.filter(|_| self.items.is_unused()) {
            let output: Vec<&RawValue> = serde_json::from_str(output.get())?;
            for (index, item) in (0_i64..).zip(output) {
                self.items.finish(index, item, out)?;
            }
        }
        let is_incomplete = status == "incomplete";
        if !is_incomplete {
            self.items.check_calls()?;
        }
        let reason = response
            .incomplete_details
            .and_then(|details| details.reason);
        let word = match reason.filter(|_| is_incomplete) {
            Some(reason) => reason.into_owned(),
            None => status.to_owned(),
        };
        self.ending = Some(Ending {
            word,
            is_incomplete,
        });
        Ok(())
    }
}

/// Returns the error that a text reports.
fn reported_error(text: &str) -> StreamError {
    StreamError::Provider(ProviderError::within(text).unwrap_or_default())
}

impl dialect::ResponseReader for ResponsesReader {
    fn size(&self) -> ResponseSize {
        self.items.size()
    }

    fn on(&mut self, data: &str, out: &mut Vec<ModelDelta>) -> Result<StreamStatus, StreamError> {
        if data.trim() == "[DONE]" {
            return Ok(StreamStatus::More);
        }
        let event: StreamEvent<'_> = serde_json::from_str(data)?;
        let index = event.output_index();
        match event.kind.as_deref().unwrap_or_default() {
            "response.created" => {
                if let Some(response) = event.response {
                    self.start(response)?;
                }
            }
            "response.output_text.delta" => self.extend(&event, PartKind::Text, out)?,
            "response.refusal.delta" => self.extend(&event, PartKind::Refusal, out)?,
            "response.reasoning_summary_text.delta" => {
                self.extend(&event, PartKind::Summary, out)?;
            }
            "response.reasoning_text.delta" => self.extend(&event, PartKind::Reasoning, out)?,
            "response.function_call_arguments.delta" => {
                if let Some(text) = fragment(event.delta)? {
                    self.items.append_arguments(index, &text, out)?;
                }
            }
            "response.function_call_arguments.done" => {
                if let Some(raw) = event.arguments {
                    let text = arguments_text(raw)?;
                    self.items.complete_arguments(index, &text, out)?;
                }
            }
            "response.output_item.added" => {
                if let Some(item) = event.item {
                    self.items.begin(index, item)?;
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.items.finish(index, item, out)?;
                }
            }
            kind @ ("response.completed" | "response.incomplete" | "response.failed") => {
                let status = kind.trim_start_matches("response.");
                self.finish(status, event.response, out)?;
                return Ok(StreamStatus::Done);
            }
            "error" => return Err(reported_error(data)),
            "" if event.error.is_some() => return Err(reported_error(data)),
            // Progress of items, whole texts after their fragments, and events that are newer than this code.
            _ => {}
        }
        Ok(StreamStatus::More)
    }

    fn end(self) -> Result<Response, StreamError> {
        let Some(ending) = self.ending else {
            return Err(StreamError::Unfinished(
                "there is no response.completed".to_owned(),
            ));
        };
        let named = ModelStop::from_vendor_reason(&ending.word);
        let stop = match named {
            ModelStop::Refusal => ModelStop::Refusal,
            ModelStop::Length | ModelStop::EndTurn | ModelStop::ToolUse if ending.is_incomplete => {
                ModelStop::Length
            }
            ModelStop::Length | ModelStop::EndTurn | ModelStop::ToolUse => {
                ModelStop::from_response(None, self.items.has_calls(), self.items.has_refused())
            }
        };
        Ok(Response {
            content: self.items.into_content(&self.provider),
            stop,
            raw_stop: Some(ending.word),
            usage: self.usage,
            model: self.model,
            provider: self.provider,
            tool_results: Vec::new(),
            request: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::ResponseReader as _;

    /// Items count before they have content, so that a server cannot send them without end.
    #[test]
    fn empty_items_count_toward_the_limit() {
        let mut reader = ResponsesReader::new("p", "m", CallIds::default());
        for index in 0..100 {
            let event = serde_json::json!({"type": "response.output_item.added",
                "output_index": index, "item": {"type": "message"}});
            assert!(reader.on(&event.to_string(), &mut Vec::new()).is_ok());
        }
        let all = 100 * ResponseSize::BLOCK_OVERHEAD_BYTES as u64;
        assert_eq!(reader.size().bytes(), all);
    }
}
