//! Summarizes older messages with the model, so that the history fits the context window.
//!
//! The summary call runs outside the loop: its tokens are in no turn's usage (I10), and the history itself is
//! not changed. Dropping the future ends the call.

#[cfg(test)]
mod tests;
mod transcript;

use crate::trace_sink::ModelCallTrace;
use futures_util::FutureExt;
use std::{panic::AssertUnwindSafe, sync::Arc};
use tokio::select;
use turnery_engine::{
    CompactionBlock, CompactionSettings, Content, ContextSize, ModelDelta, ModelError, ModelStop,
    Response, SessionId, Usage,
    compaction::{CompactionPlan, estimate_text_tokens, plan_compaction},
    context::ContextView,
};
use turnery_models::{Model, ModelEvent, ModelEventSender, ModelInfo, ModelRequest, Thinking};

/// System prompt of the summary call.
const INSTRUCTIONS: &str = include_str!("compactor/instructions.md");
/// API name of the rule-based offline model, which cannot summarize.
const OFFLINE_API: &str = "offline";
/// Capacity of the delta channel.
const DELTA_QUEUE_CAPACITY: usize = 16;
/// A summary is aborted once it is this many times longer than requested.
const MAX_OVERRUN_FACTOR: u64 = 4;

/// Request to compact the context of a session.
#[derive(Clone, Debug)]
pub struct Compaction {
    /// The session.
    pub session_id: SessionId,
    /// Messages that the model sees.
    pub view: ContextView,
    /// Size of the next request, as counted by the loop.
    pub size_before: ContextSize,
    /// True if the provider rejected the request as too long, so that the context window is smaller than `size_before`.
    pub has_overflowed: bool,
    /// Fixed part of every request (system prompt, tool schemas). Unit: tokens.
    pub overhead_tokens: u64,
    /// Settings of the compaction. The target size and the summary length are lowered if the result would
    /// exceed two thirds of the request.
    pub settings: CompactionSettings,
}

/// Result of a compaction, passed to the loop as [`Input::Compacted`](turnery_engine::Input::Compacted).
#[derive(Clone, Debug)]
pub struct CompactionOutput {
    /// Summary block, or the error.
    pub block: Result<CompactionBlock, CompactionError>,
    /// Size of the next request after the compaction.
    pub size_after: ContextSize,
    /// Usage of the summary call, if one was made and the provider reported it. Its source is
    /// [`COMPACTION`](turnery_engine::usage::source::COMPACTION).
    pub usage: Option<Usage>,
}

/// Error of a compaction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompactionError {
    /// There is nothing to replace.
    #[error("there is nothing between the first and the latest turns that a summary could replace")]
    NothingToSummarise,
    /// The offline model cannot summarize.
    #[error("the offline model cannot make summaries; take another model")]
    Offline,
    /// The model call failed.
    #[error("the model could not make a summary: {0}")]
    Model(#[from] ModelError),
    /// The model adapter panicked.
    #[error("the model adapter panicked; this is a bug in turnery")]
    AdapterPanicked,
    /// The model or a content filter refused.
    #[error("the model refused to make a summary; take another model")]
    Refused,
    /// The summary is empty.
    #[error("the model's summary was empty; try again, or take another model")]
    Empty,
    /// The summary is not shorter than the messages it replaces.
    #[error("the summary was no shorter than the messages; try again, or take another model")]
    TooLong,
}

impl Compaction {
    /// Runs the compaction with `model`.
    pub async fn run(self, model: Arc<dyn Model>) -> CompactionOutput {
        self.run_traced(model, ModelCallTrace::default).await
    }

    /// Like [`run`](Self::run), and traces the call, if one is made.
    pub(crate) async fn run_traced(
        self,
        model: Arc<dyn Model>,
        begin: impl FnOnce() -> ModelCallTrace,
    ) -> CompactionOutput {
        let mut usage = None;
        let (block, after) = match self.build_block(&*model, begin, &mut usage).await {
            Ok((block, after)) => (Ok(block), after),
            Err(error) => (Err(error), self.size_before),
        };
        CompactionOutput {
            block,
            size_after: after,
            usage,
        }
    }

    async fn build_block(
        &self,
        model: &dyn Model,
        begin: impl FnOnce() -> ModelCallTrace,
        usage: &mut Option<Usage>,
    ) -> Result<(CompactionBlock, ContextSize), CompactionError> {
        if model.info().api == OFFLINE_API {
            return Err(CompactionError::Offline);
        }
        let estimate = self.view.size().tokens.saturating_add(self.overhead_tokens);
        let room = (estimate / 3 * 2).saturating_sub(self.overhead_tokens);
        let room = self.settings.target_tokens.min(room);
        let settings = CompactionSettings {
            target_tokens: room,
            max_summary_tokens: self.settings.max_summary_tokens.min(room / 4),
            ..self.settings
        };
        let plan = plan_compaction(self.view.messages(), self.view.block(), &settings)
            .ok_or(CompactionError::NothingToSummarise)?;
        let known = model.info().context_window.map(u64::from);
        let proven = self.has_overflowed.then_some(self.size_before.tokens);
        let window = known.into_iter().chain(proven).min();
        // A window is measured in the provider's tokens, a transcript in estimated ones.
        let counted = self.size_before.tokens.max(estimate).max(1);
        let room = scale(
            transcript_budget(model.info(), window, counted),
            estimate,
            counted,
        );
        let request = self.to_request(&plan, room);
        let most = plan.max_summary_tokens().saturating_mul(MAX_OVERRUN_FACTOR);
        let response = call_model(model, request, most, begin()).await?;
        *usage = response.usage.map(Usage::normalized);
        let summary = extract_summary(response, &plan)?;
        let (block, mut after) = plan.into_block(&summary, turnery_store::now());
        // Scales the estimate of the next request by the count of the current one.
        after.tokens = scale(
            after.tokens.saturating_add(self.overhead_tokens),
            self.size_before.tokens.max(1),
            estimate.max(1),
        );
        Ok((block, after))
    }

    fn to_request(&self, plan: &CompactionPlan, room: u64) -> ModelRequest {
        let words = plan.max_summary_tokens() * 3 / 4;
        let conversation = transcript::render_transcript(plan, room);
        let text = format!(
            "<conversation>\n{conversation}</conversation>\n\nSum up this conversation as you were \
             told, in at most {words} words."
        );
        let session_id = self.session_id.clone();
        ModelRequest::single_question(session_id, INSTRUCTIONS, "summarise", text, Thinking::Off)
    }
}

/// Returns `tokens` times `factor` by `divisor`, which is not zero.
fn scale(tokens: u64, factor: u64, divisor: u64) -> u64 {
    let scaled = u128::from(tokens) * u128::from(factor) / u128::from(divisor);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Returns the maximum size of the transcript of a conversation of `whole` tokens, so that the summary fits beside it in
/// `window`. Unit: tokens.
fn transcript_budget(info: &ModelInfo, window: Option<u64>, whole: u64) -> u64 {
    let Some(window) = window else {
        return whole;
    };
    let answer = u64::from(info.max_output).min(window / 2);
    (window - answer) * 9 / 10
}

/// Returns the model's response; fails once it exceeds `most` tokens.
async fn call_model(
    model: &dyn Model,
    request: ModelRequest,
    most: u64,
    mut trace: ModelCallTrace,
) -> Result<Response, CompactionError> {
    let (out, mut deltas) = ModelEventSender::new(DELTA_QUEUE_CAPACITY);
    let call = AssertUnwindSafe(async move { model.call(request, out).await });
    let mut call = std::pin::pin!(call.catch_unwind());
    let mut tokens = 0;
    loop {
        select! {
            biased;
            Some(event) = deltas.recv() => match event {
                ModelEvent::Delta(ModelDelta::Text { text, .. }) => {
                    tokens += estimate_text_tokens(&text);
                    if tokens > most {
                        return Err(CompactionError::TooLong);
                    }
                }
                ModelEvent::Delta(ModelDelta::Thinking { .. } | ModelDelta::ToolCallArgs { .. }) => {}
                ModelEvent::Retry(retry) => trace.attempt_failed(&retry),
                ModelEvent::Silence(_) => {}
            },
            ended = &mut call => {
                let ended = ended.map_err(|_| CompactionError::AdapterPanicked)?;
                trace.end(&ended);
                return Ok(ended?);
            }
        }
    }
}

/// Extracts the summary text. A summary cut short by the output limit is used: it starts with the most
/// important points.
fn extract_summary(response: Response, plan: &CompactionPlan) -> Result<String, CompactionError> {
    match response.stop {
        ModelStop::Refusal => return Err(CompactionError::Refused),
        ModelStop::EndTurn | ModelStop::ToolUse | ModelStop::Length => {}
    }
    let texts: Vec<&str> = response
        .content
        .iter()
        .filter_map(Content::as_text)
        .collect();
    let text = texts.join("\n").trim().to_owned();
    let replaced: ContextSize = plan
        .previous_summary()
        .iter()
        .chain(plan.replaced_messages())
        .sum();
    if text.is_empty() {
        Err(CompactionError::Empty)
    } else if estimate_text_tokens(&text) >= replaced.tokens {
        Err(CompactionError::TooLong)
    } else {
        Ok(text)
    }
}
