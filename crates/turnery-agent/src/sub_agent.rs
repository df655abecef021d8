//! Implements the `task` tool, which delegates work to a child session with its own context and records. The
//! child shares the budget of the parent's prompt.
//!
//! A child has no more permissions than its parent: the same folders, rules and hooks, and the parent's mode
//! or a stricter one. Permission requests go to the same user. Cancelling the call cancels the child. The
//! child stores its loops before the call ends (S7), and its usage is reported live (LASH-66).

mod child;
mod client;

use crate::session::{Budget, ParentSession, PromptOptions, PromptResult};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{borrow::Cow, time::Duration};
use tokio_util::sync::CancellationToken;
use turnery_engine::{
    CallDetail, CallKind, Content, Message, MessageStop, Outcome, ToolEnvelope, ToolError,
    ToolErrorKind, TurnFinish, render_value,
};
use turnery_tools::{ToolCx, TypedTool, Workspace};

/// Maximum nesting depth of sub-agents (UP-19).
pub const MAX_DEPTH: u8 = 5;
/// Timeout of a call. Practically unlimited, because a child ends by its prompt's limits, which exclude the
/// time the user takes to answer.
const TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "a doc comment would become part of the schema that the model receives"
)]
pub struct TaskArgs {
    /// What it is about, in a few words, for the user.
    title: String,
    /// All that the sub-agent needs to know: it sees nothing of this conversation.
    prompt: String,
    /// True for work that only reads and searches.
    read_only: Option<bool>,
}

/// The `task` tool. Works only inside a session. Requests no permission itself: each call of the child is
/// checked separately.
#[derive(Debug, Default)]
pub struct SubAgentTool;

impl TypedTool for SubAgentTool {
    type Args = TaskArgs;
    const NAME: &'static str = "task";
    const KIND: CallKind = CallKind::Think;
    const IS_PARALLEL: bool = true;
    const OPENS_SESSIONS: bool = true;

    fn description(&self) -> Cow<'static, str> {
        "Hand a self-contained part of the work to a sub-agent that has the same tools and \
         its own context, and get back its final answer. Good for broad searches and for \
         independent parts: calls in one answer run side by side."
            .into()
    }

    fn describe(&self, args: &TaskArgs, _workspace: &Workspace) -> CallDetail {
        CallDetail {
            title: format!("Sub-agent: {}", args.title),
            kind: Self::KIND,
            ..CallDetail::default()
        }
    }

    async fn run(&self, args: TaskArgs, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        run(args, cx).await
    }

    fn timeout(&self, _args: &TaskArgs) -> Duration {
        TIMEOUT
    }
}

async fn run(args: TaskArgs, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
    let parent = ParentSession::of(cx)
        .ok_or_else(|| execution_error("a sub-agent needs a session to belong to".to_owned()))?;
    if parent.env.depth >= MAX_DEPTH {
        let message = format!("sub-agents nest no deeper than {MAX_DEPTH}: do this part yourself");
        return Err(execution_error(message));
    }
    let budget = parent.env.budget.as_ref();
    if let Some(limit) = budget.and_then(Budget::reached_limit) {
        let message = format!(
            "nothing is left for a sub-agent ({}): end the work yourself",
            limit.text
        );
        return Err(execution_error(message));
    }
    // However this future ends, the child ends too.
    let cancel = cx.cancel.child_token();
    let _ended = cancel.clone().drop_guard();
    let child = parent
        .open_child(cx, args.read_only == Some(true))
        .await
        .map_err(|error| {
            execution_error(format!(
                "the sub-agent {:?} could not start: {error}",
                args.title
            ))
        })?;
    let options = PromptOptions {
        spawned_by: Some(parent.loop_id.clone()),
        trace: cx.trace.clone(),
        ..PromptOptions::cancelled_by(cancel.clone())
    };
    let result = match child.prompt(vec![Content::text(args.prompt)], options) {
        Ok(ticket) => parent.watch(&child, ticket.result()).await,
        Err(error) => return Err(execution_error(error.to_string())),
    };
    child.close().await;
    match result {
        Ok(result) => Ok(result_envelope(&result, &cancel)),
        Err(error) => Err(execution_error(format!(
            "the sub-agent {:?} has no result: {error}",
            args.title
        ))),
    }
}

/// Builds the tool result: the child's final answer, and the reason if it was stopped.
fn result_envelope(result: &PromptResult, cancel: &CancellationToken) -> ToolEnvelope {
    let text = match &result.outcome {
        Outcome::Finished(TurnFinish::AssistantMessage { text }, limit) => Ok(match limit {
            Some(limit) => {
                format!(
                    "{text}\n\n(The sub-agent had to stop here: {}.)",
                    limit.text
                )
            }
            None => text.to_string(),
        }),
        Outcome::Finished(
            TurnFinish::FinalValue { value } | TurnFinish::ToolValue { value, .. },
            _,
        ) => Ok(render_value(value)),
        Outcome::FrameSwitch { .. } => Err(stopped_message(result, "it went on in another frame")),
        Outcome::Stopped(stop) => Err(stopped_message(result, &stop.describe())),
    };
    let envelope = match text {
        Ok(text) => ToolEnvelope::text(text),
        Err(_) if cancel.is_cancelled() => {
            ToolEnvelope::failed(ToolErrorKind::Cancelled, "the sub-agent was cancelled")
        }
        Err(text) => ToolEnvelope::failed(ToolErrorKind::ExecutionError, text),
    };
    ToolEnvelope {
        child_loop_id: result.loop_ids().last().cloned(),
        ..envelope
    }
}

fn stopped_message(result: &PromptResult, why: &str) -> String {
    let last = result
        .messages()
        .filter_map(|message| match &message.message {
            Message::Assistant { stop, .. } if *stop != MessageStop::Error => {
                Some(message.message.text()).filter(|text| !text.is_empty())
            }
            Message::Assistant { .. }
            | Message::System { .. }
            | Message::User { .. }
            | Message::ToolResult { .. } => None,
        });
    match last.last() {
        Some(text) => format!("the sub-agent did not finish: {why}. Its last words:\n{text}"),
        None => format!("the sub-agent did not finish: {why}"),
    }
}

/// Returns the error of a tool that could not do its work.
pub(crate) fn execution_error(message: String) -> ToolError {
    ToolError::new(ToolErrorKind::ExecutionError, message)
}
