//! Reads responses of `streamGenerateContent`: chunks, the last of which says why the response ended.

use super::part::PartSignature;
use crate::{
    dialect::{self, StreamError, StreamStatus},
    errors::ProviderError,
    json_str::{FragmentJoiner, JsonStr},
    response_accumulator::{ResponseAccumulator, ResponseBlock},
    token_count::{TokenCount, TokenCountError},
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use turnery_engine::{CallIds, ModelDelta, ModelStop, Response, ResponseSize, Usage};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiChunk<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    prompt_feedback: Option<PromptFeedback<'a>>,
    usage_metadata: Option<&'a RawValue>,
    model_version: Option<JsonStr<'a>>,
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    index: Option<u32>,
    #[serde(borrow)]
    content: Option<CandidateContent<'a>>,
    finish_reason: Option<JsonStr<'a>>,
    finish_message: Option<JsonStr<'a>>,
}

#[derive(Deserialize)]
struct CandidateContent<'a> {
    #[serde(borrow)]
    parts: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<JsonStr<'a>>,
    thought: Option<bool>,
    thought_signature: Option<JsonStr<'a>>,
    function_call: Option<CalledFunction<'a>>,
}

#[derive(Deserialize)]
struct CalledFunction<'a> {
    #[serde(borrow)]
    id: Option<JsonStr<'a>>,
    name: Option<JsonStr<'a>>,
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback<'a> {
    #[serde(borrow)]
    block_reason: Option<JsonStr<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiUsage {
    prompt_token_count: Option<TokenCount>,
    cached_content_token_count: Option<TokenCount>,
    candidates_token_count: Option<TokenCount>,
    thoughts_token_count: Option<TokenCount>,
    tool_use_prompt_token_count: Option<TokenCount>,
}

impl GeminiUsage {
    /// Parses a usage report; `None` if it has no counts or is partly unreadable.
    fn parse(raw: &RawValue) -> Option<Usage> {
        let report: Self = serde_json::from_str(raw.get()).ok()?;
        if report.prompt_token_count.is_none() && report.candidates_token_count.is_none() {
            return None;
        }
        report.to_usage().ok()
    }

    /// Converts to turnery's counts: input excludes cached tokens, and output includes thoughts.
    fn to_usage(&self) -> Result<Usage, TokenCountError> {
        let prompt = TokenCount::value_or_zero(self.prompt_token_count)?;
        let cached = TokenCount::value_or_zero(self.cached_content_token_count)?.min(prompt);
        let tool_use = TokenCount::value_or_zero(self.tool_use_prompt_token_count)?;
        let thoughts = TokenCount::value_or_zero(self.thoughts_token_count)?;
        let candidates = TokenCount::value_or_zero(self.candidates_token_count)?;
        Ok(Usage {
            input: (prompt - cached).saturating_add(tool_use),
            output: candidates.saturating_add(thoughts),
            reasoning: thoughts,
            cache_read: cached,
            cache_write: 0,
        })
    }
}

/// Reader of one response.
pub(crate) struct GeminiReader {
    provider: String,
    model: String,
    ids: CallIds,
    response: ResponseAccumulator,
    text: FragmentJoiner,
    thoughts: FragmentJoiner,
    has_calls: bool,
    usage: Option<Usage>,
    finish_reason: Option<String>,
    /// Reason why the prompt was refused.
    block_reason: Option<String>,
}

impl GeminiReader {
    pub(super) fn new(provider: &str, model: &str, ids: CallIds) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            ids,
            response: ResponseAccumulator::default(),
            text: FragmentJoiner::default(),
            thoughts: FragmentJoiner::default(),
            has_calls: false,
            usage: None,
            finish_reason: None,
            block_reason: None,
        }
    }

    fn read_part(&mut self, raw: &RawValue, out: &mut Vec<ModelDelta>) -> Result<(), StreamError> {
        let part: Part<'_> = serde_json::from_str(raw.get())?;
        let signature = part.thought_signature.filter(|it| !it.is_empty());
        let signature = signature.as_deref();
        match (part.function_call, part.text) {
            (Some(call), _) => self.read_call(call, signature, out),
            (None, Some(text)) if part.thought == Some(true) => {
                let text = self.thoughts.join(&text);
                self.read_thought(&text, signature, out);
                Ok(())
            }
            (None, Some(text)) if !text.is_unset() => {
                let text = self.text.join(&text);
                self.response.append_text(&text, out);
                let signed_bytes = text.len();
                self.sign(signature, Some(signed_bytes));
                Ok(())
            }
            (None, Some(_)) if signature.is_none() => Ok(()),
            // A signature alone, or a part of a kind that only the API understands.
            (None, Some(_) | None) => {
                let value: Value = serde_json::from_str(raw.get())?;
                self.response.push_opaque(value);
                Ok(())
            }
        }
    }

    fn read_call(
        &mut self,
        call: CalledFunction<'_>,
        signature: Option<&str>,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        let Some(name) = call.name.filter(|name| !name.is_empty()) else {
            return Err(StreamError::Violation("a call without a name".to_owned()));
        };
        let at = self.response.push_block(ResponseBlock::Call {
            id: self.ids.take(call.id.as_deref().unwrap_or("")),
            name: name.into_owned(),
            args: String::new(),
        });
        self.has_calls = true;
        if let Some(args) = call.args {
            self.response.append_args(at, args.get(), out);
        }
        self.sign(signature, None);
        Ok(())
    }

    fn read_thought(&mut self, text: &str, signature: Option<&str>, out: &mut Vec<ModelDelta>) {
        if let Some(ResponseBlock::Thinking {
            signature: Some(_), ..
        }) = self.response.last_block_mut()
        {
            // The signature is that of the thought before.
            self.start_thinking();
        }
        self.response.append_thinking(text, out);
        let Some(signature) = signature else {
            return;
        };
        if text.is_empty() {
            self.start_thinking();
        }
        if let Some(ResponseBlock::Thinking {
            signature: signed, ..
        }) = self.response.last_block_mut()
        {
            *signed = Some(signature.to_owned());
            self.response.count_bytes(signature.len());
        }
    }

    fn start_thinking(&mut self) {
        self.response.push_block(ResponseBlock::Thinking {
            text: String::new(),
            signature: None,
        });
    }

    /// Keeps the signature of the last block.
    fn sign(&mut self, signature: Option<&str>, signed_bytes: Option<usize>) {
        if let Some(signature) = signature {
            let signature = PartSignature {
                signature,
                signed_bytes,
            };
            self.response.push_opaque(signature.to_block());
        }
    }

    fn read_candidate(
        &mut self,
        candidate: Candidate<'_>,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        let parts = candidate.content.and_then(|content| content.parts);
        for part in parts.into_iter().flatten() {
            self.read_part(part, out)?;
        }
        let Some(reason) = candidate.finish_reason.filter(|reason| !reason.is_empty()) else {
            return Ok(());
        };
        if let Some(error) = finish_error(&reason, candidate.finish_message.as_deref()) {
            return Err(error);
        }
        self.finish_reason = Some(reason.into_owned());
        Ok(())
    }
}

/// Returns the error that a finish reason reports; `None` if the response is usable.
fn finish_error(reason: &str, message: Option<&str>) -> Option<StreamError> {
    let text = match message {
        Some(message) if !message.is_empty() => format!("finishReason {reason}: {message}"),
        Some(_) | None => format!("finishReason {reason}"),
    };
    match reason {
        // Slips of the model, which another attempt may avoid.
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "MALFORMED_RESPONSE"
        | "OTHER"
        | "FINISH_REASON_UNSPECIFIED" => Some(StreamError::Violation(text)),
        "MISSING_THOUGHT_SIGNATURE" | "TOO_MANY_TOOL_CALLS" => {
            Some(StreamError::Provider(ProviderError {
                code: "invalid_request".to_owned(),
                message: text,
                status: None,
            }))
        }
        _ => None,
    }
}

impl dialect::ResponseReader for GeminiReader {
    fn size(&self) -> ResponseSize {
        self.response.size()
    }

    fn on(&mut self, data: &str, out: &mut Vec<ModelDelta>) -> Result<StreamStatus, StreamError> {
        let chunk: GeminiChunk<'_> = serde_json::from_str(data)?;
        if chunk.error.is_some() {
            return Err(StreamError::Provider(
                ProviderError::within(data).unwrap_or_default(),
            ));
        }
        if let Some(model) = chunk.model_version.filter(|model| !model.is_empty())
            && *model != *self.model
        {
            self.model = model.into_owned();
        }
        if let Some(usage) = chunk.usage_metadata {
            self.usage = GeminiUsage::parse(usage);
        }
        let feedback = chunk.prompt_feedback.and_then(|it| it.block_reason);
        if let Some(reason) = feedback.filter(|reason| !reason.is_empty()) {
            self.block_reason = Some(reason.into_owned());
        }
        // Only one candidate was requested.
        let is_first = |candidate: &Candidate<'_>| candidate.index.unwrap_or(0) == 0;
        let candidate = chunk.candidates.into_iter().flatten().find(is_first);
        if let Some(candidate) = candidate {
            self.read_candidate(candidate, out)?;
        }
        Ok(StreamStatus::More)
    }

    fn end(self) -> Result<Response, StreamError> {
        let (stop, raw_stop) = match (self.finish_reason, self.block_reason) {
            (Some(reason), _) => {
                let has_refused = matches!(
                    reason.as_str(),
                    "LANGUAGE" | "IMAGE_PROHIBITED_CONTENT" | "IMAGE_RECITATION"
                );
                let stop = ModelStop::from_response(Some(&reason), self.has_calls, has_refused);
                (stop, reason)
            }
            (None, Some(reason)) => (ModelStop::Refusal, reason),
            (None, None) => {
                return Err(StreamError::Unfinished(
                    "there is no finishReason".to_owned(),
                ));
            }
        };
        // A known slip of the models: they stop before they have said anything.
        if stop == ModelStop::EndTurn && self.response.is_empty() {
            return Err(StreamError::Violation(format!(
                "finishReason {raw_stop}, and no content"
            )));
        }
        Ok(Response {
            content: self.response.into_content(&self.provider),
            stop,
            raw_stop: Some(raw_stop),
            usage: self.usage,
            model: self.model,
            provider: self.provider,
            tool_results: Vec::new(),
            request: None,
        })
    }
}
