//! Reads responses of Chat Completions: chunks, optionally followed by `[DONE]`.

use super::{
    chunk::{Choice, ChoiceDelta, Chunk, ContentPart, ToolCallDelta},
    quirks::ReasoningField,
    reasoning_details::ReasoningDetails,
    replayed_reasoning::ReplayedReasoning,
    tool_calls::ToolCallAssembler,
    usage::ChatUsage,
};
use crate::{
    dialect::{self, StreamError, StreamStatus},
    errors::ProviderError,
    json_str::{FragmentJoiner, JsonStr},
    parallel_calls,
    response_accumulator::ResponseAccumulator,
};
use serde_json::{Value, value::RawValue};
use turnery_engine::{CallIds, Content, ModelDelta, ModelStop, Response, ResponseSize};

/// Finish reasons that report a failure of the server.
const FAILURES: [&str; 4] = [
    "error",
    "network_error",
    "insufficient_system_resource",
    "abort",
];

/// Reader of one response.
pub(crate) struct OpenAiReader {
    provider: String,
    model: String,
    calls: ToolCallAssembler,
    response: ResponseAccumulator,
    text: FragmentJoiner,
    reasoning: FragmentJoiner,
    /// Field in which reasoning usually comes.
    usual_field: ReasoningField,
    /// Field in which it came.
    field: Option<ReasoningField>,
    details: ReasoningDetails,
    usage: ChatUsage,
    raw_stop: Option<String>,
    has_refused: bool,
    is_done: bool,
}

impl OpenAiReader {
    pub(super) fn new(
        provider: &str,
        model: &str,
        usual_field: ReasoningField,
        ids: CallIds,
    ) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            calls: ToolCallAssembler::new(ids),
            response: ResponseAccumulator::default(),
            text: FragmentJoiner::default(),
            reasoning: FragmentJoiner::default(),
            usual_field,
            field: None,
            details: ReasoningDetails::default(),
            usage: ChatUsage::default(),
            raw_stop: None,
            has_refused: false,
            is_done: false,
        }
    }

    fn read_chunk(
        &mut self,
        chunk: Chunk<'_>,
        data: &str,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        if chunk.error.is_some() {
            return Err(provider_error(data));
        }
        // vLLM and SGLang send an error as the whole chunk.
        if chunk.choices.is_none()
            && chunk.usage.is_none()
            && let Some(error) = ProviderError::within(data)
            && (error.status.is_some() || error.code.to_ascii_lowercase().contains("error"))
        {
            return Err(StreamError::Provider(error));
        }
        if let Some(model) = chunk.model.filter(|model| !model.is_empty())
            && *model != *self.model
        {
            self.model = model.into_owned();
        }
        // Only one choice was requested.
        if let Some(choice) = chunk.choices.into_iter().flatten().next() {
            self.read_choice(choice, out)?;
        }
        if let Some(usage) = chunk.usage {
            self.usage.read(usage);
        }
        Ok(())
    }

    fn read_choice(
        &mut self,
        choice: Choice<'_>,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        if let Some(error) = choice.error {
            return Err(provider_error(&format!("{{\"error\":{}}}", error.get())));
        }
        if let Some(delta) = choice.delta {
            self.read_delta(delta, out)?;
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.raw_stop = Some(reason.into_owned());
        }
        if let Some(usage) = choice.usage {
            self.usage.read(usage);
        }
        Ok(())
    }

    fn read_delta(
        &mut self,
        delta: ChoiceDelta<'_>,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        self.read_reasoning(&delta, out);
        if let Some(raw) = delta.content {
            self.read_content(raw, out)?;
        }
        if let Some(text) = delta.refusal {
            self.has_refused |= !text.is_empty();
            self.response.append_text(&text, out);
        }
        for call in delta.tool_calls.iter().flatten() {
            self.calls.push_delta(call, &mut self.response, out)?;
        }
        if let Some(function) = delta.function_call {
            let call = ToolCallDelta {
                index: serde_json::from_str("0").ok(),
                id: None,
                function: Some(function),
            };
            self.calls.push_delta(&call, &mut self.response, out)?;
        }
        Ok(())
    }

    /// Reads the reasoning of a delta. Some servers send the same reasoning in several fields: the first applies.
    fn read_reasoning(&mut self, delta: &ChoiceDelta<'_>, out: &mut Vec<ModelDelta>) {
        let fields = [
            (ReasoningField::ReasoningContent, &delta.reasoning_content),
            (ReasoningField::Reasoning, &delta.reasoning),
            (ReasoningField::ReasoningText, &delta.reasoning_text),
        ];
        let mut texts = fields
            .into_iter()
            .filter_map(|(field, text)| Some((field, text.as_ref()?)))
            .filter(|(_, text)| !text.is_unset());
        let first = texts.next();
        if let Some((field, text)) = first {
            self.field.get_or_insert(field);
            let text = self.reasoning.join(text);
            self.response.append_thinking(&text, out);
        }
        if let Some(raw) = delta.reasoning_details {
            let mut readable = String::new();
            let wanted = first.is_none().then_some(&mut readable);
            let entries = self.details.read(raw, wanted);
            let overhead = entries.saturating_mul(ResponseSize::BLOCK_OVERHEAD_BYTES);
            self.response
                .count_bytes(raw.get().len().saturating_add(overhead));
            self.response.append_thinking(&readable, out);
        }
    }

    fn read_content(
        &mut self,
        raw: &RawValue,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        if raw.get().starts_with('[') {
            let parts: Vec<ContentPart<'_>> = serde_json::from_str(raw.get())?;
            for part in parts {
                for thought in part.thinking.iter().flatten() {
                    let Some(text) = &thought.text else {
                        continue;
                    };
                    self.field.get_or_insert(ReasoningField::ThinkingParts);
                    let text = self.reasoning.join(text);
                    self.response.append_thinking(&text, out);
                }
                if let Some(text) = &part.text {
                    self.response.append_text(&self.text.join(text), out);
                }
            }
            return Ok(());
        }
        let text: JsonStr<'_> = serde_json::from_str(raw.get())?;
        self.response.append_text(&self.text.join(&text), out);
        Ok(())
    }
}

/// Returns the error that a text reports.
fn provider_error(text: &str) -> StreamError {
    StreamError::Provider(ProviderError::within(text).unwrap_or_default())
}

impl dialect::ResponseReader for OpenAiReader {
    fn size(&self) -> ResponseSize {
        self.response.size()
    }

    fn on(&mut self, data: &str, out: &mut Vec<ModelDelta>) -> Result<StreamStatus, StreamError> {
        if data.trim() == "[DONE]" {
            self.is_done = true;
            return Ok(StreamStatus::Done);
        }
        let error = match serde_json::from_str::<Chunk<'_>>(data) {
            Ok(chunk) => {
                self.read_chunk(chunk, data, out)?;
                return Ok(StreamStatus::More);
            }
            Err(error) => error,
        };
        // Some servers repeat a key, of which the last one applies.
        let merged = match serde_json::from_str::<Value>(data) {
            Ok(value) => value.to_string(),
            Err(_) => return Err(error.into()),
        };
        match serde_json::from_str::<Chunk<'_>>(&merged) {
            Ok(chunk) => self.read_chunk(chunk, &merged, out)?,
            // Nothing unreadable that follows the end takes the answer away.
            Err(_) if self.raw_stop.is_some() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(StreamStatus::More)
    }

    fn end(self) -> Result<Response, StreamError> {
        let is_empty = self.response.size().bytes() == 0;
        if self.raw_stop.is_none() && (!self.is_done || is_empty) {
            let why = match self.is_done {
                true => "there is neither content nor a finish_reason",
                false => "there is neither [DONE] nor a finish_reason",
            };
            return Err(StreamError::Unfinished(why.to_owned()));
        }
        let word = self.raw_stop.as_deref();
        if let Some(word) = word.filter(|word| FAILURES.contains(word)) {
            return Err(StreamError::Provider(ProviderError {
                message: format!("finish_reason {word}"),
                ..ProviderError::default()
            }));
        }
        let word = match word {
            // Z.ai.
            Some("sensitive") => Some("content_filter"),
            word => word,
        };
        let stop = ModelStop::from_response(word, !self.calls.is_empty(), self.has_refused);
        let mut content = self.response.into_content(&self.provider);
        content = parallel_calls::unpack(content, &mut self.calls.into_ids());
        let unusual_field = self.field.filter(|field| *field != self.usual_field);
        let reasoning = ReplayedReasoning {
            field: unusual_field,
            details: self.details.into_value(),
        };
        if let Some(value) = reasoning.into_value() {
            content.push(Content::Opaque {
                provider: self.provider.clone(),
                value,
            });
        }
        Ok(Response {
            content,
            stop,
            raw_stop: self.raw_stop,
            usage: self.usage.into_usage(),
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
    use serde_json::json;

    /// Entries take memory before they have content, so that a server cannot send them without end.
    #[test]
    fn empty_reasoning_details_count_toward_the_limit() {
        let usual = ReasoningField::ReasoningContent;
        let mut reader = OpenAiReader::new("p", "m", usual, CallIds::default());
        let entries: Vec<Value> = (0..100).map(|index| json!({"index": index})).collect();
        let chunk = json!({"choices": [{"delta": {"reasoning_details": entries}}]});
        let mut size = 0;
        for is_new in [true, false] {
            assert!(reader.on(&chunk.to_string(), &mut Vec::new()).is_ok());
            let added = reader.size().bytes() - size;
            size += added;
            let overhead = 100 * ResponseSize::BLOCK_OVERHEAD_BYTES as u64;
            assert_eq!(added >= overhead, is_new, "{added}");
        }
    }
}
