//! Sub-agents: the tool `task`, which lets the model hand part of its work to a child session with a
//! context and records of its own. It draws on the budget of the prompt that it works for.
//!
//! A child can do no more than its parent: it works in the same folders, under the same rules and
//! hooks, with the parent's mode or a stricter one, and what it may not do unasked is asked of the
//! same person. A cancel of the call cancels the child. It stores its own loops before the call ends
//! (S7), and what it spends is told as it goes (LASH-66).

mod parent;
mod ports;

pub(crate) use parent::{CHILD_TURNS, Parent};

use crate::{CancellationToken, PromptOptions, PromptResult};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use turnery_engine::{
    CallDetail, CallKind, Content, Detail, FailureKind, Message, MessageStop, Outcome,
    ToolEnvelope, ToolFailure, ToolSpec, TurnFinish, render,
};
use turnery_tools::{Tool, ToolCx, Workspace, parse_args, spec_for};

/// How the model calls it.
pub(crate) const NAME: &str = "task";
/// How deep sub-agents may nest (UP-19).
pub const DEEPEST: u8 = 5;
/// A child ends by the limits of its prompt, which leave out the time that a person takes to answer.
const TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// What it is about, in a few words, for the user.
    title: String,
    /// All that the sub-agent needs to know: it sees nothing of this conversation.
    prompt: String,
    /// True for work that only reads and searches.
    read_only: Option<bool>,
}

/// The tool `task`. Does its work only inside a session. Asks for nothing itself: each call of the
/// child is judged by itself.
#[derive(Debug)]
pub struct SubAgents {
    spec: ToolSpec,
}

impl SubAgents {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self {
            spec: spec_for::<Args>(
                NAME,
                "Hand a self-contained part of the work to a sub-agent that has the same tools and \
                 its own context, and get back its final answer. Good for broad searches and for \
                 independent parts: calls in one answer run side by side.",
            ),
        }
    }
}

impl Default for SubAgents {
    fn default() -> Self {
        Self::new()
    }
}

impl Tool for SubAgents {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn kind(&self) -> CallKind {
        CallKind::Think
    }

    fn describe(&self, args: &Value, _workspace: &Workspace) -> CallDetail {
        let title = args.get("title").and_then(Value::as_str).unwrap_or(NAME);
        CallDetail {
            title: format!("Sub-agent: {title}"),
            kind: self.kind(),
            ..CallDetail::default()
        }
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move { run(args, cx).await.unwrap_or_else(ToolEnvelope::from) })
    }

    fn parallel(&self, _args: &Value) -> bool {
        true
    }

    fn timeout(&self, _args: &Value) -> Duration {
        TIMEOUT
    }
}

async fn run(args: &Value, cx: &ToolCx) -> Result<ToolEnvelope, ToolFailure> {
    let args: Args = parse_args(args)?;
    let parent = cx
        .host
        .as_ref()
        .and_then(|host| Arc::clone(host).downcast::<Parent>().ok())
        .ok_or_else(|| failed("a sub-agent needs a session to belong to".to_owned()))?;
    if parent.depth >= DEEPEST {
        let message = format!("sub-agents nest no deeper than {DEEPEST}: do this part yourself");
        return Err(failed(message));
    }
    if let Some(limit) = parent.budget.reached() {
        let text = limit.sentence().unwrap_or_default();
        let message = format!("nothing is left for a sub-agent ({text}): end the work yourself");
        return Err(failed(message));
    }
    // However this future ends, so does the child.
    let cancel = cx.cancel.child_token();
    let _ended = cancel.clone().drop_guard();
    let child = parent
        .open(cx, args.read_only == Some(true))
        .await
        .map_err(|error| failed(format!("{:?} could not begin: {error}", args.title)))?;
    let options = PromptOptions {
        spawned_by: Some(parent.loop_id.clone()),
        trace: cx.trace.clone(),
        ..PromptOptions::cancelled_by(cancel.clone())
    };
    let result = match child.prompt(vec![Content::text(args.prompt)], options) {
        Ok(ticket) => parent.watch(&child, ticket.result()).await,
        Err(error) => return Err(failed(error.to_string())),
    };
    child.close().await;
    match result {
        Ok(result) => Ok(told(&result, &cancel)),
        Err(error) => Err(failed(format!(
            "{:?} has left nothing: {error}",
            args.title
        ))),
    }
}

/// What the calling model reads: the child's last words, and how it ended if not by itself.
fn told(result: &PromptResult, cancel: &CancellationToken) -> ToolEnvelope {
    let text = match &result.outcome {
        Outcome::Finished(TurnFinish::AssistantMessage { text }) => Ok(match &result.detail {
            Some(limit @ Detail::Limit { .. }) => {
                let limit = limit.sentence().unwrap_or_default();
                format!("{text}\n\n(The sub-agent had to stop here: {limit}.)")
            }
            Some(
                Detail::Provider { .. }
                | Detail::Refusal
                | Detail::Rejection { .. }
                | Detail::Runtime { .. }
                | Detail::Continued { .. },
            )
            | None => text.to_string(),
        }),
        Outcome::Finished(
            TurnFinish::FinalValue { value } | TurnFinish::ToolValue { value, .. },
        ) => Ok(render(value)),
        Outcome::FrameSwitch { .. } => Err(stopped(result, "it went on in another frame")),
        Outcome::Stopped(stop) => Err(stopped(result, &stop.sentence(result.detail.as_ref()))),
    };
    let envelope = match text {
        Ok(text) => ToolEnvelope::text(text),
        Err(_) if cancel.is_cancelled() => {
            ToolEnvelope::failed(FailureKind::Cancelled, "the sub-agent was cancelled")
        }
        Err(text) => ToolEnvelope::failed(FailureKind::ExecutionError, text),
    };
    ToolEnvelope {
        child_loop_id: result.loop_ids().last().cloned(),
        ..envelope
    }
}

fn stopped(result: &PromptResult, why: &str) -> String {
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

fn failed(message: String) -> ToolFailure {
    ToolFailure {
        kind: FailureKind::ExecutionError,
        message,
        details: None,
    }
}
