//! Translate: events into updates, live and replayed. The only place that knows both.

use crate::{
    calls::{Calls, Ended},
    news::{Takes, aside, meta},
    shown,
    spent::Spent,
    till::{self, Till},
    update::{UpdateWriter, Voice},
};
use agent_client_protocol_schema::v1::{
    Cost, NoticeSeverity, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate,
    UsageUpdate,
};
use serde_json::{Value, json};
use turnery_engine::{
    Content, ContinuationKind, Detail, Event, EventKind, LlmMessage, Message, MessageId,
    PlanPriority, PlanStatus, StreamDelta, Usage, render,
};
use turnery_tools::visible_line;

/// What has been shown of one session's running loop.
#[derive(Debug, Default)]
pub(crate) struct Translator {
    takes: Takes,
    calls: Calls,
    /// The message whose text has been streamed; its end repeats nothing.
    streamed: Option<MessageId>,
    /// The running loop's value was shown; its end repeats nothing.
    value_shown: bool,
    /// The compaction under way.
    compaction: Option<String>,
    /// Tokens that the model can take in, when known.
    window: Option<u32>,
    used: Option<u64>,
    spent: Spent,
    till: Till,
}

impl Translator {
    pub(crate) fn new(takes: Takes, till: Till) -> Self {
        Self {
            takes,
            till,
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
                    show(self.calls.running(call_id), to);
                }
            }
            EventKind::ToolExecutionOutput { call_id, text } => {
                show(self.calls.printed(call_id, text, event.at), to);
            }
            EventKind::ToolProgress { call_id, text } => {
                show(self.calls.progressed(call_id, text), to);
            }
            EventKind::ToolExecutionEnd { call_id, .. } => {
                if let Some(ended) = Ended::of(&event.kind) {
                    show(self.calls.end(call_id, &ended), to);
                }
            }
            EventKind::PlanUpdated { entries } => to.update(&plan(entries)),
            EventKind::LoopStart { .. } => self.begin(event, to),
            EventKind::UsageReported { usage, cumulative } => {
                self.uses(usage.as_ref());
                self.spent.turn(*cumulative);
                self.till.called(usage.as_ref());
                self.report_usage(to);
            }
            EventKind::ChildUsageReported { call_id, child } => {
                show(self.calls.has_child(call_id, &child.session_id), to);
                self.spent.child(child);
                self.till.child(child);
                self.report_usage(to);
            }
            EventKind::CompactionStarted { .. } => {
                let id = self.compaction.insert(compaction_id(event));
                to.update(&self.takes.compacting(id));
            }
            EventKind::CompactionEnded {
                block,
                after,
                failure,
                usage,
            } => {
                self.till.called(usage.as_ref());
                let id = self.compaction.take();
                let id = id.unwrap_or_else(|| compaction_id(event));
                let ended = self
                    .takes
                    .compacted(&id, block.as_ref(), failure.as_deref());
                to.update(&ended);
                self.used = Some(after.tokens);
                self.report_usage(to);
            }
            // Of those that were not chosen nothing is told here.
            EventKind::ParallelEnd { .. } => self.till.lose_count(),
            EventKind::ModelRetried {
                attempt,
                fault,
                wait_ms,
            } => to.update(&self.takes.retried(*attempt, fault, *wait_ms)),
            EventKind::ModelSilent {
                silent_ms,
                is_connected,
            } => to.update(&self.takes.silent(*silent_ms, *is_connected)),
            EventKind::Issue { text } => {
                let title = "Something did not work";
                to.update(&self.takes.notice(NoticeSeverity::Warning, title, text));
            }
            EventKind::InputRejected { reason } => {
                let title = "The input was refused";
                to.update(&self.takes.notice(NoticeSeverity::Warning, title, reason));
            }
            EventKind::FinalValue { value } | EventKind::ToolValue { value, .. } => {
                self.value(value, event, to);
            }
            EventKind::LoopEnd {
                outcome, detail, ..
            } => {
                if let Some(value) = outcome.value() {
                    self.value(value, event, to);
                }
                if let Some(Detail::Limit { text, .. }) = detail {
                    let title = "The prompt reached a limit";
                    to.update(&self.takes.notice(NoticeSeverity::Warning, title, text));
                }
            }
            EventKind::TurnStart { .. }
            | EventKind::MessageStart { .. }
            | EventKind::PermissionResolved { .. }
            | EventKind::ParallelStart { .. }
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
            EventKind::ToolExecutionEnd { call_id, .. } => {
                if let Some(ended) = Ended::of(&event.kind) {
                    show(self.calls.replayed(call_id, &ended), to);
                }
            }
            EventKind::PlanUpdated { entries } => to.update(&plan(entries)),
            EventKind::LoopStart { .. } => self.begin(event, to),
            EventKind::UsageReported { usage, cumulative } => {
                self.uses(usage.as_ref());
                self.spent.turn(*cumulative);
            }
            EventKind::ChildUsageReported { call_id, child } => {
                let _ = self.calls.has_child(call_id, &child.session_id);
                self.spent.child(child);
            }
            EventKind::CompactionStarted { .. } => self.compaction = Some(compaction_id(event)),
            EventKind::CompactionEnded { block, after, .. } => {
                let id = self.compaction.take();
                if block.is_some() {
                    let id = id.unwrap_or_else(|| compaction_id(event));
                    to.update(&self.takes.compacted(&id, block.as_ref(), None));
                }
                self.used = Some(after.tokens);
            }
            EventKind::FinalValue { value } | EventKind::ToolValue { value, .. } => {
                self.value(value, event, to);
            }
            EventKind::LoopEnd { outcome, .. } => {
                for call in self.calls.unfinished() {
                    to.update(&call);
                }
                if let Some(value) = outcome.value() {
                    self.value(value, event, to);
                }
                self.report_usage(to);
            }
            EventKind::Delta { .. }
            | EventKind::ToolExecutionStart { .. }
            | EventKind::ToolExecutionOutput { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::InputRejected { .. }
            | EventKind::ModelRetried { .. }
            | EventKind::ModelSilent { .. }
            | EventKind::Issue { .. }
            | EventKind::TurnStart { .. }
            | EventKind::MessageStart { .. }
            | EventKind::PermissionResolved { .. }
            | EventKind::ParallelStart { .. }
            | EventKind::ParallelEnd { .. }
            | EventKind::TurnEnd { .. } => {}
        }
    }

    /// A loop begins.
    fn begin(&mut self, event: &Event, to: &mut UpdateWriter) {
        let EventKind::LoopStart {
            prompt_id, config, ..
        } = &event.kind
        else {
            return;
        };
        self.value_shown = false;
        self.window = config.as_ref().and_then(|config| config.context_window);
        self.spent.begin(prompt_id);
        self.till.begin(config.as_deref());
        if let Some(told) = lineage(event) {
            to.update(&aside(told));
        }
    }

    /// A value that a program or a tool ended the loop with, as prose, once (rows 2, 3, 14, 15).
    fn value(&mut self, value: &Value, event: &Event, to: &mut UpdateWriter) {
        let text = render(value);
        if !std::mem::replace(&mut self.value_shown, true) && !text.is_empty() {
            to.text(Voice::Agent, &format!("{}.value", event.loop_id), &text);
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

    /// How full the context is: only when both numbers are known (USAGE-1). What children spent fills
    /// no context of ours; it stands beside.
    fn report_usage(&self, to: &mut UpdateWriter) {
        if let (Some(used), Some(window)) = (self.used, self.window) {
            let size = used.max(u64::from(window));
            let cost = self.till.amount();
            let update = UsageUpdate::new(used, size)
                .cost(cost.map(|amount| Cost::new(amount, till::CURRENCY)))
                .meta(self.spent.to_wire().map(meta));
            to.update(&SessionUpdate::UsageUpdate(update));
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
            Content::Image(_) | Content::Audio(_) => {
                if let Some(block) = shown::block(item) {
                    to.chunk(voice, id, block);
                }
            }
            Content::ToolCall(_) | Content::Opaque { .. } => {}
        }
    }
}

/// That a loop goes on, tries again, branches off or opens a frame: told in `_meta`, since the wire has
/// no word for it.
pub(crate) fn lineage(event: &Event) -> Option<Value> {
    let EventKind::LoopStart {
        parent_loop_id,
        continuation_kind,
        tag,
        frame_id,
        frame,
        ..
    } = &event.kind
    else {
        return None;
    };
    if *continuation_kind == ContinuationKind::Initial && frame.is_none() {
        return None;
    }
    let mut told = json!({"loopId": event.loop_id, "continuationKind": continuation_kind});
    for (key, value) in [
        (
            "parentLoopId",
            parent_loop_id.as_ref().map(ToString::to_string),
        ),
        ("tag", tag.clone()),
        ("frameId", frame_id.as_ref().map(ToString::to_string)),
        ("task", frame.as_ref().map(|frame| frame.task.clone())),
    ] {
        if let Some(value) = value {
            told[key] = value.into();
        }
    }
    Some(json!({ "loop": told }))
}

/// The id of a compaction that begins with this event: the same live and replayed (COMP-2).
fn compaction_id(event: &Event) -> String {
    format!("{}.{}", event.loop_id, event.seq)
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
            PlanEntry::new(visible_line(&entry.content), priority, status)
        })
        .collect();
    SessionUpdate::Plan(Plan::new(entries))
}
