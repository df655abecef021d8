//! Translate: events into v2 updates, live and replayed. Beside [`crate::translate`], the only place
//! that knows both; neither knows the other.

use super::{
    calls::{self, Calls, Ended},
    news, shown,
    state::State,
    stop,
};
use crate::{
    news::meta,
    spent::Spent,
    till::{self, Till},
    update::{UpdateWriter, Voice},
};
use agent_client_protocol_schema::v2::{
    AgentMessage, AgentThought, ContentBlock, Cost, NoticeSeverity, PlanEntry, PlanEntryPriority,
    PlanEntryStatus, PlanUpdate, PlanUpdateContent, SessionUpdate, UsageUpdate, UserMessage,
};
use serde_json::Value;
use turnery_agent::{PromptError, PromptResult};
use turnery_engine::{
    Content, Detail, Event, EventKind, LlmMessage, Message, MessageId, PlanPriority, PlanStatus,
    SessionId, StreamDelta, Usage, render,
};
use turnery_tools::visible_line;

/// What has been shown of one session's running loop.
#[derive(Debug, Default)]
pub(crate) struct Translator {
    state: State,
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
    pub(crate) fn new(till: Till) -> Self {
        Self {
            till,
            ..Self::default()
        }
    }

    /// An event that has just happened.
    pub(crate) fn live(&mut self, event: &Event, to: &mut UpdateWriter) {
        match &event.kind {
            EventKind::Delta { message_id, delta } => {
                let (voice, text) = match delta {
                    StreamDelta::Text { text, .. } => (Voice::Agent, text),
                    StreamDelta::Thinking { text, .. } => (Voice::Thought, text),
                    StreamDelta::ToolCallArgs { .. } => return,
                };
                to.text(voice, message_id.as_str(), text);
                if self.streamed.as_ref() != Some(message_id) {
                    self.streamed = Some(message_id.clone());
                }
            }
            EventKind::MessageEnd { message } => {
                if self.streamed.take().as_ref() != Some(&message.message_id) {
                    say(message, to);
                }
            }
            EventKind::ToolCallRequested { call, detail } => {
                self.calls.begin(call, detail);
                self.calls.announce(&call.call_id, to);
            }
            EventKind::PermissionRequested { call_id, detail } => {
                self.calls.shows(call_id, detail, to);
                self.state.asks(to);
            }
            EventKind::PermissionResolved { .. } => self.state.answered(to),
            EventKind::ToolExecutionUpdate { call_id, detail } => {
                self.calls.shows(call_id, detail, to);
            }
            EventKind::ToolExecutionStart { call_id, runs, .. } => {
                if *runs && self.calls.has(call_id) {
                    self.state.call_runs(to);
                    self.calls.running(call_id, to);
                }
            }
            EventKind::ToolExecutionOutput { call_id, text } => {
                self.calls.printed(call_id, text, to);
            }
            EventKind::ToolProgress { call_id, text } => self.calls.progressed(call_id, text, to),
            EventKind::ToolExecutionEnd { call_id, .. } => {
                if let Some(ended) = ended(&event.kind)
                    && self.calls.end(call_id, ended, to)
                {
                    self.state.call_ended(to);
                }
            }
            EventKind::PlanUpdated { entries } => to.update(&plan(&event.session_id, entries)),
            EventKind::LoopStart { .. } => {
                self.state.begins(to);
                self.begin(event, to);
            }
            EventKind::UsageReported { usage, cumulative } => {
                self.uses(usage.as_ref());
                self.spent.turn(*cumulative);
                self.till.called(usage.as_ref());
                self.report_usage(to);
            }
            EventKind::ChildUsageReported { call_id, child } => {
                if self.calls.has_child(call_id, &child.session_id) {
                    calls::child_of(call_id, &child.session_id, to);
                }
                self.spent.child(child);
                self.till.child(child);
                self.report_usage(to);
            }
            EventKind::CompactionStarted { .. } => {
                let id = self.compaction.insert(compaction_id(event));
                to.update(&news::compacting(id));
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
                to.update(&news::compacted(&id, block.as_ref(), failure.as_deref()));
                self.used = Some(after.tokens);
                self.report_usage(to);
            }
            // Of those that were not chosen nothing is told here.
            EventKind::ParallelEnd { .. } => self.till.lose_count(),
            EventKind::ModelRetried {
                attempt,
                fault,
                wait_ms,
            } => to.update(&news::retried(*attempt, fault, *wait_ms)),
            EventKind::ModelSilent {
                silent_ms,
                is_connected,
            } => to.update(&news::silent(*silent_ms, *is_connected)),
            EventKind::Issue { text } => {
                let title = "Something did not work";
                to.update(&news::notice(NoticeSeverity::Warning, title, text));
            }
            EventKind::InputRejected { reason } => {
                let title = "The input was refused";
                to.update(&news::notice(NoticeSeverity::Warning, title, reason));
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
                    to.update(&news::notice(NoticeSeverity::Warning, title, text));
                }
            }
            EventKind::TurnStart { .. }
            | EventKind::MessageStart { .. }
            | EventKind::ParallelStart { .. }
            | EventKind::TurnEnd { .. } => {}
        }
    }

    /// An event of an earlier time. What it said whole is said whole, under the same id; calls come in
    /// their final state; notices do not come again.
    pub(crate) fn replay(&mut self, event: &Event, to: &mut UpdateWriter) {
        match &event.kind {
            EventKind::MessageEnd { message } => say(message, to),
            EventKind::ToolCallRequested { call, detail } => self.calls.begin(call, detail),
            EventKind::PermissionRequested { call_id, detail }
            | EventKind::ToolExecutionUpdate { call_id, detail } => {
                self.calls.showed(call_id, detail);
            }
            EventKind::ToolExecutionEnd { call_id, .. } => {
                if let Some(ended) = ended(&event.kind) {
                    self.calls.replayed(call_id, ended, to);
                }
            }
            EventKind::PlanUpdated { entries } => to.update(&plan(&event.session_id, entries)),
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
                    to.update(&news::compacted(&id, block.as_ref(), None));
                }
                self.used = Some(after.tokens);
            }
            EventKind::FinalValue { value } | EventKind::ToolValue { value, .. } => {
                self.value(value, event, to);
            }
            EventKind::LoopEnd { outcome, .. } => {
                self.calls.unfinished(to);
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

    /// A prompt is over, and all of it was shown.
    pub(crate) fn ended(&mut self, end: &Result<PromptResult, PromptError>, to: &mut UpdateWriter) {
        self.state.rests(stop::to_wire(end), to);
    }

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
        if let Some(told) = crate::translate::lineage(event) {
            to.update(&news::aside(told));
        }
    }

    /// A value that a program or a tool ended the loop with, as prose, once.
    fn value(&mut self, value: &Value, event: &Event, to: &mut UpdateWriter) {
        let text = render(value);
        if !std::mem::replace(&mut self.value_shown, true) && !text.is_empty() {
            let id = format!("{}.value", event.loop_id);
            let said = AgentMessage::new(id).content(vec![shown::text_block(text)]);
            to.update(&SessionUpdate::AgentMessage(said));
        }
    }

    fn uses(&mut self, usage: Option<&Usage>) {
        if let Some(usage) = usage {
            self.used = Some(usage.context());
        }
    }

    /// How full the context is: only when both numbers are known.
    fn report_usage(&self, to: &mut UpdateWriter) {
        if let (Some(used), Some(window)) = (self.used, self.window) {
            let size = used.max(u64::from(window));
            let mut update = UsageUpdate::new(used, size);
            if self.till.counts() {
                // What is not known any more takes back what was told.
                let cost = self.till.amount();
                update = update.cost(cost.map(|amount| Cost::new(amount, till::CURRENCY)));
            }
            if let Some(spent) = self.spent.to_wire() {
                update = update.meta(meta(spent));
            }
            to.update(&SessionUpdate::UsageUpdate(update));
        }
    }
}

fn ended(kind: &EventKind) -> Option<Ended<'_>> {
    let EventKind::ToolExecutionEnd {
        envelope,
        disposition,
        child_loop_id,
        ..
    } = kind
    else {
        return None;
    };
    Some(Ended {
        envelope,
        disposition: *disposition,
        child_loop_id: child_loop_id.as_ref(),
    })
}

/// A whole message (V2-6, V2-11). What only the model is told is not shown.
fn say(message: &LlmMessage, to: &mut UpdateWriter) {
    let id = message.message_id.as_str();
    let (voice, content) = match &message.message {
        Message::User { content } => (Voice::User, content),
        Message::Assistant { content, .. } => (Voice::Agent, content),
        Message::System { .. } | Message::ToolResult { .. } => return,
    };
    let thoughts: Vec<ContentBlock> = content.iter().filter_map(thought).collect();
    if !thoughts.is_empty() {
        let said = AgentThought::new(id).content(thoughts);
        to.update(&SessionUpdate::AgentThought(said));
    }
    let blocks: Vec<ContentBlock> = content.iter().filter_map(spoken).collect();
    match voice {
        Voice::User => to.update(&SessionUpdate::UserMessage(
            UserMessage::new(id).content(blocks),
        )),
        Voice::Agent | Voice::Thought if blocks.is_empty() => {}
        Voice::Agent | Voice::Thought => to.update(&SessionUpdate::AgentMessage(
            AgentMessage::new(id).content(blocks),
        )),
    }
}

fn thought(content: &Content) -> Option<ContentBlock> {
    match content {
        Content::Thinking { text, .. } if !text.is_empty() => {
            Some(shown::text_block(text.as_str()))
        }
        Content::Thinking { .. }
        | Content::Text { .. }
        | Content::Image(_)
        | Content::Audio(_)
        | Content::ToolCall(_)
        | Content::Opaque { .. } => None,
    }
}

fn spoken(content: &Content) -> Option<ContentBlock> {
    match content {
        Content::Text { text } if text.is_empty() => None,
        Content::Text { .. }
        | Content::Thinking { .. }
        | Content::Image(_)
        | Content::Audio(_)
        | Content::ToolCall(_)
        | Content::Opaque { .. } => shown::block(content),
    }
}

/// The id of a compaction that begins with this event: the same live and replayed.
fn compaction_id(event: &Event) -> String {
    format!("{}.{}", event.loop_id, event.seq)
}

/// The session's plan, whole. It has one, so its id never changes.
fn plan(session: &SessionId, entries: &[turnery_engine::PlanEntry]) -> SessionUpdate {
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
    let plan = PlanUpdateContent::items(format!("{session}.plan"), entries);
    SessionUpdate::PlanUpdate(PlanUpdate::new(plan))
}
