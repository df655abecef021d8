//! Translate: events into updates, live and replayed. The only place that knows both.

use crate::{
    calls::Calls,
    shown,
    update::{UpdateWriter, Voice},
};
use agent_client_protocol_schema::v1::{
    Notice, NoticeSeverity, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate,
    UsageUpdate,
};
use serde_json::Value;
use turnery_engine::{
    Content, Detail, Event, EventKind, LlmMessage, Message, MessageId, Outcome, PlanPriority,
    PlanStatus, StreamDelta, TurnFinish, TurnStop, Usage,
};

/// What has been shown of one session's running loop.
#[derive(Debug, Default)]
pub(crate) struct Translator {
    notices: bool,
    calls: Calls,
    /// The message whose text has been streamed; its end repeats nothing.
    streamed: Option<MessageId>,
    /// Tokens that the model can take in, when known.
    window: Option<u32>,
    used: Option<u64>,
}

impl Translator {
    pub(crate) fn new(notices: bool) -> Self {
        Self {
            notices,
            ..Self::default()
        }
    }

    /// An event that has just happened.
    pub(crate) fn live(&mut self, event: &Event, to: &mut UpdateWriter) {
        match &event.kind {
            EventKind::Delta { message_id, delta } => match delta {
                StreamDelta::Text { text, .. } => {
                    to.text(Voice::Agent, message_id.as_str(), text);
                    self.streams(message_id);
                }
                StreamDelta::Thinking { text, .. } => {
                    to.text(Voice::Thought, message_id.as_str(), text);
                    self.streams(message_id);
                }
                StreamDelta::ToolCallArgs { .. } => {}
            },
            EventKind::MessageEnd { message } => {
                if self.streamed.take().as_ref() != Some(&message.message_id)
                    && matches!(message.message, Message::Assistant { .. })
                {
                    say(message, to);
                }
            }
            EventKind::ToolCallRequested { call, detail } => {
                self.calls.begin(call, detail);
                show(self.calls.announce(&call.call_id), to);
            }
            EventKind::PermissionRequested { call_id, detail }
            | EventKind::ToolExecutionUpdate { call_id, detail } => {
                show(self.calls.shows(call_id, detail), to);
            }
            EventKind::ToolExecutionStart { call_id, runs, .. } => {
                if *runs {
                    to.update(&Calls::running(call_id));
                }
            }
            EventKind::ToolExecutionOutput { call_id, text } => {
                show(self.calls.printed(call_id, text, event.at), to);
            }
            EventKind::ToolExecutionEnd {
                call_id, envelope, ..
            } => show(self.calls.end(call_id, envelope), to),
            EventKind::PlanUpdated { entries } => to.update(&plan(entries)),
            EventKind::LoopStart { config, .. } => {
                self.window = config.as_ref().and_then(|config| config.context_window);
            }
            EventKind::UsageReported { usage, .. } => {
                self.uses(usage.as_ref());
                self.report_usage(to);
            }
            EventKind::LoopEnd {
                outcome, detail, ..
            } => {
                value(outcome, event, to);
                if self.notices
                    && let Some(Detail::Limit { text, .. }) = detail
                {
                    let notice = Notice::new(NoticeSeverity::Warning, "The prompt reached a limit");
                    to.update(&SessionUpdate::Notice(notice.description(text.clone())));
                }
            }
            EventKind::InputRejected { .. }
            | EventKind::TurnStart { .. }
            | EventKind::MessageStart { .. }
            | EventKind::PermissionResolved { .. }
            | EventKind::CompactionStarted { .. }
            | EventKind::CompactionEnded { .. }
            | EventKind::ModelRetried { .. }
            | EventKind::Issue { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::ChildUsageReported { .. }
            | EventKind::FinalValue { .. }
            | EventKind::ToolValue { .. }
            | EventKind::TurnEnd { .. } => {}
        }
    }

    /// An event of an earlier time. What it said whole is said whole; calls come in their final
    /// state (LOAD-1, LOAD-7); notices do not come again (LOAD-6).
    pub(crate) fn replay(&mut self, event: &Event, to: &mut UpdateWriter) {
        match &event.kind {
            EventKind::MessageEnd { message } => say(message, to),
            EventKind::ToolCallRequested { call, detail } => self.calls.begin(call, detail),
            EventKind::PermissionRequested { call_id, detail }
            | EventKind::ToolExecutionUpdate { call_id, detail } => {
                let _ = self.calls.shows(call_id, detail);
            }
            EventKind::ToolExecutionEnd {
                call_id, envelope, ..
            } => show(self.calls.replayed(call_id, envelope), to),
            EventKind::PlanUpdated { entries } => to.update(&plan(entries)),
            EventKind::LoopStart { config, .. } => {
                self.window = config.as_ref().and_then(|config| config.context_window);
            }
            EventKind::UsageReported { usage, .. } => self.uses(usage.as_ref()),
            EventKind::LoopEnd { outcome, .. } => {
                for call in self.calls.unfinished() {
                    to.update(&call);
                }
                value(outcome, event, to);
                self.report_usage(to);
            }
            EventKind::Delta { .. }
            | EventKind::ToolExecutionStart { .. }
            | EventKind::ToolExecutionOutput { .. }
            | EventKind::InputRejected { .. }
            | EventKind::TurnStart { .. }
            | EventKind::MessageStart { .. }
            | EventKind::PermissionResolved { .. }
            | EventKind::CompactionStarted { .. }
            | EventKind::CompactionEnded { .. }
            | EventKind::ModelRetried { .. }
            | EventKind::Issue { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::ChildUsageReported { .. }
            | EventKind::FinalValue { .. }
            | EventKind::ToolValue { .. }
            | EventKind::TurnEnd { .. } => {}
        }
    }

    fn streams(&mut self, message_id: &MessageId) {
        if self.streamed.as_ref() != Some(message_id) {
            self.streamed = Some(message_id.clone());
        }
    }

    fn uses(&mut self, usage: Option<&Usage>) {
        if let Some(usage) = usage {
            self.used = Some(usage.context());
        }
    }

    /// How full the context is: only when both numbers are known (USAGE-1).
    fn report_usage(&self, to: &mut UpdateWriter) {
        if let (Some(used), Some(window)) = (self.used, self.window) {
            let size = used.max(u64::from(window));
            to.update(&SessionUpdate::UsageUpdate(UsageUpdate::new(used, size)));
        }
    }
}

fn show(update: Option<SessionUpdate>, to: &mut UpdateWriter) {
    if let Some(update) = update {
        to.update(&update);
    }
}

/// A whole message. What only the model is told (notices of the engine, tool results) is not shown.
fn say(message: &LlmMessage, to: &mut UpdateWriter) {
    let id = message.message_id.as_str();
    let (voice, content) = match &message.message {
        Message::User { content } => (Voice::User, content),
        Message::Assistant { content, .. } => (Voice::Agent, content),
        Message::System { .. } | Message::ToolResult { .. } => return,
    };
    for item in content {
        match item {
            Content::Text { text } if text.is_empty() => {}
            Content::Text { text } => to.text(voice, id, text),
            Content::Thinking { text, .. } if text.is_empty() => {}
            Content::Thinking { text, .. } => to.text(Voice::Thought, id, text),
            Content::Image(_) => {
                if let Some(block) = shown::block(item) {
                    to.chunk(voice, id, block);
                }
            }
            Content::ToolCall(_) | Content::Opaque { .. } => {}
        }
    }
}

/// A value that a program or a tool ended the prompt with, as prose (rows 2, 3, 14, 15).
fn value(outcome: &Outcome, event: &Event, to: &mut UpdateWriter) {
    let value = match outcome {
        Outcome::Finished(
            TurnFinish::FinalValue { value } | TurnFinish::ToolValue { value, .. },
        )
        | Outcome::Stopped(
            TurnStop::SubmittedError { value } | TurnStop::ToolError { value, .. },
        ) => value,
        Outcome::Finished(TurnFinish::AssistantMessage { .. })
        | Outcome::FrameSwitch { .. }
        | Outcome::Stopped(
            TurnStop::Cancelled
            | TurnStop::InvalidInput
            | TurnStop::Incomplete
            | TurnStop::ProviderError
            | TurnStop::MaxTurns
            | TurnStop::ToolFailure
            | TurnStop::PluginAbort
            | TurnStop::RuntimeError,
        ) => return,
    };
    let text = match value {
        Value::String(text) => text.clone(),
        value => format!("```json\n{value:#}\n```"),
    };
    to.text(Voice::Agent, &format!("{}.value", event.loop_id), &text);
}

/// The plan, whole (PLAN-2).
fn plan(entries: &[turnery_engine::PlanEntry]) -> SessionUpdate {
    let entries = entries
        .iter()
        .map(|entry| {
            let priority = match entry.priority {
                PlanPriority::High => PlanEntryPriority::High,
                PlanPriority::Medium => PlanEntryPriority::Medium,
                PlanPriority::Low => PlanEntryPriority::Low,
            };
            let status = match entry.status {
                PlanStatus::Pending => PlanEntryStatus::Pending,
                PlanStatus::InProgress => PlanEntryStatus::InProgress,
                PlanStatus::Completed => PlanEntryStatus::Completed,
            };
            PlanEntry::new(entry.content.clone(), priority, status)
        })
        .collect();
    SessionUpdate::Plan(Plan::new(entries))
}
