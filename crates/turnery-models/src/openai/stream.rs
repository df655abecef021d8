//! Reads responses of Chat Completions: chunks, optionally followed by `[DONE]`.

use super::{
    chunk::{ChoiceDelta, Chunk, ContentPart, OpenAiUsage, ToolCallDelta},
    tool_calls::ToolCallAssembler,
};
use crate::{
    dialect::{self, StreamError, StreamStatus},
    errors::ProviderError,
    json_str::JsonStr,
    response_accumulator::ResponseAccumulator,
};
use serde_json::value::RawValue;
use turnery_engine::{CallIds, ModelDelta, ModelStop, Response, ResponseSize, Usage};

/// Reader of one response.
pub(crate) struct OpenAiReader {
    provider: String,
    model: String,
    calls: ToolCallAssembler,
    response: ResponseAccumulator,
    usage: Option<Usage>,
    raw_stop: Option<String>,
    has_refused: bool,
    is_done: bool,
}

impl OpenAiReader {
    pub(super) fn new(provider: &str, model: &str, ids: CallIds) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            calls: ToolCallAssembler::new(ids),
            response: ResponseAccumulator::default(),
            usage: None,
            raw_stop: None,
            has_refused: false,
            is_done: false,
        }
    }

    fn read_delta(
        &mut self,
        delta: ChoiceDelta<'_>,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        // Some servers send the same reasoning in both fields.
        let reasoning = delta
            .reasoning_content
            .filter(|text| !text.is_empty())
            .or(delta.reasoning);
        if let Some(text) = reasoning {
            self.response.append_thinking(&text, out);
        }
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
                index: Some(0),
                id: None,
                function: Some(function),
            };
            self.calls.push_delta(&call, &mut self.response, out)?;
        }
        Ok(())
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
                    self.response
                        .append_thinking(thought.text.as_deref().unwrap_or(""), out);
                }
                self.response
                    .append_text(part.text.as_deref().unwrap_or(""), out);
            }
            return Ok(());
        }
        let text: JsonStr<'_> = serde_json::from_str(raw.get())?;
        self.response.append_text(&text, out);
        Ok(())
    }
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
        let chunk: Chunk<'_> = serde_json::from_str(data)?;
        if chunk.error.is_some() {
            return Err(StreamError::Provider(
                ProviderError::within(data).unwrap_or_default(),
            ));
        }
        if let Some(model) = chunk.model.filter(|model| !model.is_empty())
            && *model != *self.model
        {
            self.model = model.into_owned();
        }
        if let Some(usage) = chunk.usage {
            self.usage = OpenAiUsage::parse(usage);
        }
        // Only one choice was requested.
        if let Some(choice) = chunk.choices.into_iter().flatten().next() {
            if let Some(delta) = choice.delta {
                self.read_delta(delta, out)?;
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.raw_stop = Some(reason.into_owned());
            }
        }
        Ok(StreamStatus::More)
    }

    fn end(self) -> Result<Response, StreamError> {
        if !self.is_done && self.raw_stop.is_none() {
            return Err(StreamError::Unfinished(
                "there is neither [DONE] nor a finish_reason".to_owned(),
            ));
        }
        let word = self.raw_stop.as_deref();
        if let Some(word @ ("error" | "insufficient_system_resource")) = word {
            return Err(StreamError::Provider(ProviderError {
                message: format!("finish_reason {word}"),
                ..ProviderError::default()
            }));
        }
        let stop = ModelStop::from_response(word, !self.calls.is_empty(), self.has_refused);
        Ok(Response {
            content: self.response.into_content(&self.provider),
            stop,
            raw_stop: self.raw_stop,
            usage: self.usage,
            model: self.model,
            provider: self.provider,
            tool_results: Vec::new(),
        })
    }
}
