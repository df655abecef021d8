//! The answer of Chat Completions: chunks, then perhaps `[DONE]`.

use super::{
    calls::Calls,
    chunk::{CallDelta, Chunk, Delta, Part, WireUsage},
};
use crate::{
    answer::{CallIds, Parts},
    fault::Said,
    remote::{self, Broken, Step},
    text::Text,
};
use serde_json::value::RawValue;
use turnery_engine::{AnswerSize, ModelDelta, ModelStop, Response, Usage};

/// Reads one answer.
pub(crate) struct Reader {
    provider: String,
    model: String,
    calls: Calls,
    parts: Parts,
    usage: Option<Usage>,
    raw_stop: Option<String>,
    has_refused: bool,
    is_done: bool,
}

impl Reader {
    pub(super) fn new(provider: &str, model: &str, ids: CallIds) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            calls: Calls::new(ids),
            parts: Parts::default(),
            usage: None,
            raw_stop: None,
            has_refused: false,
            is_done: false,
        }
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut Vec<ModelDelta>) -> Result<(), Broken> {
        // Some servers send the same reasoning under both names.
        let reasoning = delta
            .reasoning_content
            .filter(|text| !text.is_empty())
            .or(delta.reasoning);
        if let Some(text) = reasoning {
            self.parts.thinking(&text, out);
        }
        if let Some(raw) = delta.content {
            self.content(raw, out)?;
        }
        if let Some(text) = delta.refusal {
            self.has_refused |= !text.is_empty();
            self.parts.text(&text, out);
        }
        for call in delta.tool_calls.iter().flatten() {
            self.calls.on(call, &mut self.parts, out)?;
        }
        if let Some(function) = delta.function_call {
            let call = CallDelta {
                index: Some(0),
                id: None,
                function: Some(function),
            };
            self.calls.on(&call, &mut self.parts, out)?;
        }
        Ok(())
    }

    fn content(&mut self, raw: &RawValue, out: &mut Vec<ModelDelta>) -> Result<(), Broken> {
        if raw.get().starts_with('[') {
            let parts: Vec<Part<'_>> = serde_json::from_str(raw.get())?;
            for part in parts {
                for thought in part.thinking.iter().flatten() {
                    self.parts
                        .thinking(thought.text.as_deref().unwrap_or(""), out);
                }
                self.parts.text(part.text.as_deref().unwrap_or(""), out);
            }
            return Ok(());
        }
        let text: Text<'_> = serde_json::from_str(raw.get())?;
        self.parts.text(&text, out);
        Ok(())
    }
}

impl remote::Reader for Reader {
    fn size(&self) -> AnswerSize {
        self.parts.size()
    }

    fn on(&mut self, data: &str, out: &mut Vec<ModelDelta>) -> Result<Step, Broken> {
        if data.trim() == "[DONE]" {
            self.is_done = true;
            return Ok(Step::Done);
        }
        let chunk: Chunk<'_> = serde_json::from_str(data)?;
        if chunk.error.is_some() {
            return Err(Broken::Said(Said::within(data).unwrap_or_default()));
        }
        if let Some(model) = chunk.model.filter(|model| !model.is_empty())
            && *model != *self.model
        {
            self.model = model.into_owned();
        }
        if let Some(usage) = chunk.usage {
            self.usage = WireUsage::read(usage);
        }
        // One answer was asked for: the first choice is the only one.
        if let Some(choice) = chunk.choices.into_iter().flatten().next() {
            if let Some(delta) = choice.delta {
                self.delta(delta, out)?;
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.raw_stop = Some(reason.into_owned());
            }
        }
        Ok(Step::More)
    }

    fn end(self) -> Result<Response, Broken> {
        if !self.is_done && self.raw_stop.is_none() {
            return Err(Broken::Unfinished(
                "there is neither [DONE] nor a finish_reason".to_owned(),
            ));
        }
        let word = self.raw_stop.as_deref();
        if let Some(word @ ("error" | "insufficient_system_resource")) = word {
            return Err(Broken::Said(Said {
                message: format!("finish_reason {word}"),
                ..Said::default()
            }));
        }
        let stop = ModelStop::of_answer(word, !self.calls.is_empty(), self.has_refused);
        Ok(Response {
            content: self.parts.settle(&self.provider),
            stop,
            raw_stop: self.raw_stop,
            usage: self.usage,
            model: self.model,
            provider: self.provider,
            tool_results: Vec::new(),
        })
    }
}
