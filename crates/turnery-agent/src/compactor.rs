//! Compactor: has the model sum up older messages, so that history fits its context window again.
//!
//! The call is made beside the loop: its tokens are in no turn's usage (I10), and history itself is
//! not touched. Dropping the future ends the call.

#[cfg(test)]
mod tests;
mod transcript;

use crate::trace_sink::Trace;
use futures_util::FutureExt;
use std::{panic::AssertUnwindSafe, sync::Arc};
use tokio::select;
use turnery_engine::{
    CompactionBlock, CompactionSettings, Content, ContextSize, ModelDelta, ModelFault, ModelStop,
    Response, SessionId, Usage,
    compaction::{Plan, plan, text_tokens},
    context::View,
};
use turnery_models::{DeltaSender, Model, ModelInfo, ModelRequest, Thinking, Told};

/// What the model is told to do.
const INSTRUCTIONS: &str = include_str!("compactor/instructions.md");
/// The model that knows some sentences only: its summary would be a page of help.
const OFFLINE: &str = "offline";
/// Fragments of the summary that may wait.
const DELTAS_WAITING: usize = 16;
/// A summary that gets so many times longer than was asked for is not waited for.
const PATIENCE: u64 = 4;

/// What is to be compacted.
#[derive(Clone, Debug)]
pub struct Compaction {
    /// The session.
    pub session_id: SessionId,
    /// What it shows the model.
    pub view: View,
    /// What the next request holds, as far as the loop knows.
    pub before: ContextSize,
    /// What of every request is no message: the system prompt, the tools. Unit: tokens.
    pub overhead: u64,
    /// What to keep. Less is kept if more than two thirds of the request would still be there.
    pub settings: CompactionSettings,
}

/// What came of it: an [`Input::Compacted`](turnery_engine::Input::Compacted) in the making.
#[derive(Clone, Debug)]
pub struct Compacted {
    /// The overlay, or why there is none.
    pub block: Result<CompactionBlock, CompactionFault>,
    /// What the next request holds now.
    pub after: ContextSize,
    /// What the summary cost, if a call was made and the provider said so. Its source is
    /// [`COMPACTION`](turnery_engine::usage::source::COMPACTION).
    pub usage: Option<Usage>,
}

/// Why history was not compacted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompactionFault {
    /// All that there is stays.
    #[error(
        "there is nothing between the first and the latest turns that a summary could stand for"
    )]
    NothingToSummarise,
    /// The model is a set of rules.
    #[error("the offline model cannot make summaries; take another model")]
    Offline,
    /// The model could not be called.
    #[error("the model could not make a summary: {0}")]
    Model(#[from] ModelFault),
    /// The adapter broke.
    #[error("the model adapter broke; this is a fault of turnery")]
    Broken,
    /// It refused, or a content filter did.
    #[error("the model refused to make a summary; take another model")]
    Refused,
    /// It said nothing.
    #[error("the model's summary was empty; try again, or take another model")]
    Empty,
    /// The summary is no shorter than what it stands for.
    #[error("the summary was no shorter than the messages; try again, or take another model")]
    TooLong,
}

impl Compaction {
    /// Have `model` make the summary.
    pub async fn run(self, model: Arc<dyn Model>) -> Compacted {
        self.traced(model, Trace::default).await
    }

    /// The same, and trace the call, if there is one.
    pub(crate) async fn traced(
        self,
        model: Arc<dyn Model>,
        begin: impl FnOnce() -> Trace,
    ) -> Compacted {
        let mut usage = None;
        let (block, after) = match self.block(&*model, begin, &mut usage).await {
            Ok((block, after)) => (Ok(block), after),
            Err(fault) => (Err(fault), self.before),
        };
        Compacted {
            block,
            after,
            usage,
        }
    }

    async fn block(
        &self,
        model: &dyn Model,
        begin: impl FnOnce() -> Trace,
        usage: &mut Option<Usage>,
    ) -> Result<(CompactionBlock, ContextSize), CompactionFault> {
        if model.info().api == OFFLINE {
            return Err(CompactionFault::Offline);
        }
        let estimate = self.view.size().tokens.saturating_add(self.overhead);
        let room = (estimate / 3 * 2).saturating_sub(self.overhead);
        let room = self.settings.room.min(room);
        let settings = CompactionSettings {
            room,
            summary_tokens: self.settings.summary_tokens.min(room / 4),
            ..self.settings
        };
        let plan = plan(self.view.messages(), self.view.block(), &settings)
            .ok_or(CompactionFault::NothingToSummarise)?;
        let room = transcript_room(model.info(), estimate);
        let request = self.request(&plan, room);
        let most = plan.summary_tokens().saturating_mul(PATIENCE);
        let response = answer(model, request, most, begin()).await?;
        *usage = response.usage.map(Usage::consistent);
        let summary = accepted(response, &plan)?;
        let (block, mut after) = plan.block(&summary, turnery_store::now());
        // What was counted for the request as it was, and what is only estimated for the one to come.
        let counted = u128::from(self.before.tokens.max(1));
        let left = u128::from(after.tokens.saturating_add(self.overhead));
        let left = left * counted / u128::from(estimate.max(1));
        after.tokens = u64::try_from(left).unwrap_or(u64::MAX);
        Ok((block, after))
    }

    fn request(&self, plan: &Plan, room: u64) -> ModelRequest {
        let words = plan.summary_tokens() * 3 / 4;
        let conversation = transcript::of(plan, room);
        let text = format!(
            "<conversation>\n{conversation}</conversation>\n\nSum up this conversation as you were \
             told, in at most {words} words."
        );
        let session_id = self.session_id.clone();
        ModelRequest::question(session_id, INSTRUCTIONS, "summarise", text, Thinking::Off)
    }
}

/// How long the record of the conversation may be: the answer must fit beside it. Unit: tokens.
fn transcript_room(info: &ModelInfo, estimate: u64) -> u64 {
    let Some(window) = info.context_window.map(u64::from) else {
        return estimate;
    };
    let answer = u64::from(info.max_output).min(window / 2);
    (window - answer) * 9 / 10
}

/// The model's answer, unless it gets longer than `most` tokens.
async fn answer(
    model: &dyn Model,
    request: ModelRequest,
    most: u64,
    mut trace: Trace,
) -> Result<Response, CompactionFault> {
    let (out, mut deltas) = DeltaSender::new(DELTAS_WAITING);
    let call = AssertUnwindSafe(async move { model.call(request, out).await });
    let mut call = std::pin::pin!(call.catch_unwind());
    let mut said = 0;
    loop {
        select! {
            biased;
            Some(told) = deltas.recv() => match told {
                Told::Delta(ModelDelta::Text { text, .. }) => {
                    said += text_tokens(&text);
                    if said > most {
                        return Err(CompactionFault::TooLong);
                    }
                }
                Told::Delta(ModelDelta::Thinking { .. } | ModelDelta::ToolCallArgs { .. }) => {}
                Told::Retry(retry) => trace.failed(&retry),
                Told::Silent(_) => {}
            },
            ended = &mut call => {
                let ended = ended.map_err(|_| CompactionFault::Broken)?;
                trace.end(&ended);
                return Ok(ended?);
            }
        }
    }
}

/// The text of the summary. One that the output limit cut short is better than none: what matters
/// most stands first in it.
fn accepted(response: Response, plan: &Plan) -> Result<String, CompactionFault> {
    match response.stop {
        ModelStop::Refusal => return Err(CompactionFault::Refused),
        ModelStop::EndTurn | ModelStop::ToolUse | ModelStop::Length => {}
    }
    let texts: Vec<&str> = response
        .content
        .iter()
        .filter_map(Content::as_text)
        .collect();
    let text = texts.join("\n").trim().to_owned();
    let replaced: ContextSize = plan.earlier().iter().chain(plan.replaced()).sum();
    if text.is_empty() {
        Err(CompactionFault::Empty)
    } else if text_tokens(&text) >= replaced.tokens {
        Err(CompactionFault::TooLong)
    } else {
        Ok(text)
    }
}
