//! Encodes agent events as v2 `session/update` notifications, live and replayed. Independent of the v1
//! [`crate::v1::encoder`].

use super::{
    notices,
    session_state::StateReporter,
    stop_reason, tool_call_view,
    tool_calls::{self, CallEndV2, ToolCallsV2},
};
use crate::{
    transport::update_writer::{ChunkAuthor, UpdateWriter},
    view::{
        meta::turnery_meta,
        prompt_usage::PromptUsage,
        session_cost::{self, SessionCost},
    },
};
use agent_client_protocol_schema::v2::{
    AgentMessage, AgentThought, ContentBlock, Cost, NoticeSeverity, PlanEntry, PlanEntryPriority,
    PlanEntryStatus, PlanUpdate, PlanUpdateContent, SessionUpdate, UsageUpdate, UserMessage,
};
use serde_json::Value;
use turnery_agent::{PromptError, PromptResult};
use turnery_engine::{
    Content, Event, EventKind, LlmMessage, Message, MessageId, PlanPriority, PlanStatus, SessionId,
    StreamDelta, Usage, render_value,
};
use turnery_tools::visible_line;

/// Encoder of one session: remembers what the client was shown of the running loop.
#[derive(Debug, Default)]
pub(crate) struct EncoderV2 {
    session_state: StateReporter,
    tool_calls: ToolCallsV2,
    /// Message whose text was streamed; its end event must not repeat the text.
    streamed_message: Option<MessageId>,
    /// True once the running loop's value was shown; the end event must not repeat it.
    is_value_shown: bool,
    /// Id of the running compaction.
    running_compaction: Option<String>,
    /// Size of the model's context window, if known. Unit: tokens.
    context_window: Option<u32>,
    context_tokens: Option<u64>,
    prompt_usage: PromptUsage,
    session_cost: SessionCost,
}

impl EncoderV2 {
    pub(crate) fn new(session_cost: SessionCost) -> Self {
        Self {
            session_cost,
            ..Self::default()
        }
    }

    /// Encodes an event as it happens.
    pub(crate) fn encode_live(&mut self, event: &Event, to: &mut UpdateWriter) {
        match &event.kind {
            EventKind::Delta { message_id, delta } => {
                let (voice, text) = match delta {
                    StreamDelta::Text { text, .. } => (ChunkAuthor::Agent, text),
                    StreamDelta::Thinking { text, .. } => (ChunkAuthor::Thought, text),
                    StreamDelta::ToolCallArgs { .. } => return,
                };
                to.write_text(voice, message_id.as_str(), text);
                if self.streamed_message.as_ref() != Some(message_id) {
                    self.streamed_message = Some(message_id.clone());
                }
            }
            EventKind::MessageEnd { message } => {
                if self.streamed_message.take().as_ref() != Some(&message.message_id) {
                    encode_message(message, to);
                }
            }
            EventKind::ToolCallRequested { call, detail } => {
                self.tool_calls.register(call, detail);
                self.tool_calls.encode_call(&call.call_id, to);
            }
            EventKind::PermissionRequested { call_id, detail } => {
                self.tool_calls.update_detail(call_id, detail, to);
                self.session_state.begin_question(to);
            }
            EventKind::PermissionResolved { .. } => self.session_state.end_question(to),
            EventKind::ToolExecutionUpdate { call_id, detail } => {
                self.tool_calls.update_detail(call_id, detail, to);
            }
            EventKind::ToolExecutionStart { call_id, runs, .. } => {
                if *runs && self.tool_calls.contains(call_id) {
                    self.session_state.begin_call(to);
                    self.tool_calls.encode_start(call_id, to);
                }
            }
            EventKind::ToolExecutionOutput { call_id, text } => {
                self.tool_calls.append_output(call_id, text, to);
            }
            EventKind::ToolProgress { call_id, text } => {
                self.tool_calls.set_progress(call_id, text, to)
            }
            EventKind::ToolExecutionEnd { call_id, .. } => {
                if let Some(ended) = call_end(&event.kind)
                    && self.tool_calls.encode_end(call_id, ended, to)
                {
                    self.session_state.end_call(to);
                }
            }
            EventKind::PlanUpdated { entries } => {
                to.write_update(&encode_plan(&event.session_id, entries))
            }
            EventKind::LoopStart { .. } => {
                self.session_state.begin_loop(to);
                self.begin_loop(event, to);
            }
            EventKind::UsageReported { usage, cumulative } => {
                self.record_context(usage.as_ref());
                self.prompt_usage.record_turn(*cumulative);
                self.session_cost.record_call(usage.as_ref());
                self.encode_usage(to);
            }
            EventKind::ChildUsageReported { call_id, child } => {
                if self
                    .tool_calls
                    .set_child_session(call_id, &child.session_id)
                {
                    tool_calls::write_child_session(call_id, &child.session_id, to);
                }
                self.prompt_usage.record_child(child);
                self.session_cost.record_child(child);
                self.encode_usage(to);
            }
            EventKind::CompactionStarted { .. } => {
                let id = self.running_compaction.insert(compaction_id(event));
                to.write_update(&notices::encode_compaction_start(id));
            }
            EventKind::CompactionEnded {
                block,
                after,
                failure,
                usage,
            } => {
                self.session_cost.record_call(usage.as_ref());
                let id = self.running_compaction.take();
                let id = id.unwrap_or_else(|| compaction_id(event));
                to.write_update(&notices::encode_compaction_end(
                    &id,
                    block.as_ref(),
                    failure.as_deref(),
                ));
                self.context_tokens = Some(after.tokens);
                self.encode_usage(to);
            }
            // The cost of rejected candidates is not in the events.
            EventKind::ParallelEnd { .. } => self.session_cost.invalidate(),
            EventKind::ModelRetried {
                attempt,
                error: fault,
                wait_ms,
            } => to.write_update(&notices::encode_retry(*attempt, fault, *wait_ms)),
            EventKind::ModelSilent {
                silent_ms,
                is_connected,
            } => to.write_update(&notices::encode_silence(*silent_ms, *is_connected)),
            EventKind::Issue { text } => {
                let title = "Something went wrong";
                to.write_update(&notices::encode_notice(
                    NoticeSeverity::Warning,
                    title,
                    text,
                ));
            }
            EventKind::InputRejected { reason } => {
                let title = "The input was refused";
                to.write_update(&notices::encode_notice(
                    NoticeSeverity::Warning,
                    title,
                    reason,
                ));
            }
            EventKind::FinalValue { value } | EventKind::ToolValue { value, .. } => {
                self.encode_value(value, event, to);
            }
            EventKind::LoopEnd { outcome, .. } => {
                if let Some(value) = outcome.value() {
                    self.encode_value(value, event, to);
                }
                if let Some(limit) = outcome.limit() {
                    let title = "The prompt reached a limit";
                    to.write_update(&notices::encode_notice(
                        NoticeSeverity::Warning,
                        title,
                        &limit.text,
                    ));
                }
            }
            EventKind::TurnStart { .. }
            | EventKind::MessageStart { .. }
            | EventKind::ParallelStart { .. }
            | EventKind::TurnEnd { .. } => {}
        }
    }

    /// Encodes a stored event. Streamed text is sent as whole messages with the same ids, calls in their final
    /// state; notices are omitted.
    pub(crate) fn encode_replay(&mut self, event: &Event, to: &mut UpdateWriter) {
        match &event.kind {
            EventKind::MessageEnd { message } => encode_message(message, to),
            EventKind::ToolCallRequested { call, detail } => self.tool_calls.register(call, detail),
            EventKind::PermissionRequested { call_id, detail }
            | EventKind::ToolExecutionUpdate { call_id, detail } => {
                self.tool_calls.replay_detail(call_id, detail);
            }
            EventKind::ToolExecutionEnd { call_id, .. } => {
                if let Some(ended) = call_end(&event.kind) {
                    self.tool_calls.encode_replayed(call_id, ended, to);
                }
            }
            EventKind::PlanUpdated { entries } => {
                to.write_update(&encode_plan(&event.session_id, entries))
            }
            EventKind::LoopStart { .. } => self.begin_loop(event, to),
            EventKind::UsageReported { usage, cumulative } => {
                self.record_context(usage.as_ref());
                self.prompt_usage.record_turn(*cumulative);
            }
            EventKind::ChildUsageReported { call_id, child } => {
                let _ = self
                    .tool_calls
                    .set_child_session(call_id, &child.session_id);
                self.prompt_usage.record_child(child);
            }
            EventKind::CompactionStarted { .. } => {
                self.running_compaction = Some(compaction_id(event))
            }
            EventKind::CompactionEnded { block, after, .. } => {
                let id = self.running_compaction.take();
                if block.is_some() {
                    let id = id.unwrap_or_else(|| compaction_id(event));
                    to.write_update(&notices::encode_compaction_end(&id, block.as_ref(), None));
                }
                self.context_tokens = Some(after.tokens);
            }
            EventKind::FinalValue { value } | EventKind::ToolValue { value, .. } => {
                self.encode_value(value, event, to);
            }
            EventKind::LoopEnd { outcome, .. } => {
                self.tool_calls.encode_unfinished(to);
                if let Some(value) = outcome.value() {
                    self.encode_value(value, event, to);
                }
                self.encode_usage(to);
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

    /// Reports the end of a prompt, after all its updates.
    pub(crate) fn encode_prompt_end(
        &mut self,
        end: &Result<PromptResult, PromptError>,
        to: &mut UpdateWriter,
    ) {
        self.session_state
            .become_idle(stop_reason::encode_idle_state(end), to);
    }

    fn begin_loop(&mut self, event: &Event, to: &mut UpdateWriter) {
        let EventKind::LoopStart {
            prompt_id, config, ..
        } = &event.kind
        else {
            return;
        };
        self.is_value_shown = false;
        self.context_window = config.as_ref().and_then(|config| config.context_window);
        self.prompt_usage.begin_loop(prompt_id);
        self.session_cost.begin_loop(config.as_deref());
        if let Some(members) = crate::v1::encoder::lineage_meta(event) {
            to.write_update(&notices::meta_only_update(members));
        }
    }

    /// Shows the value a program or tool ended the loop with as text, once.
    fn encode_value(&mut self, value: &Value, event: &Event, to: &mut UpdateWriter) {
        let text = render_value(value);
        if !std::mem::replace(&mut self.is_value_shown, true) && !text.is_empty() {
            let id = format!("{}.value", event.loop_id);
            let message_update =
                AgentMessage::new(id).content(vec![tool_call_view::text_block(text)]);
            to.write_update(&SessionUpdate::AgentMessage(message_update));
        }
    }

    fn record_context(&mut self, usage: Option<&Usage>) {
        if let Some(usage) = usage {
            self.context_tokens = Some(usage.context_tokens());
        }
    }

    /// Reports context usage if both numbers are known.
    fn encode_usage(&self, to: &mut UpdateWriter) {
        if let (Some(used), Some(window)) = (self.context_tokens, self.context_window) {
            let size = used.max(u64::from(window));
            let mut update = UsageUpdate::new(used, size);
            if self.session_cost.is_enabled() {
                // A cost that became unknown clears the reported one.
                let cost = self.session_cost.amount();
                update = update.cost(cost.map(|amount| Cost::new(amount, session_cost::CURRENCY)));
            }
            if let Some(spent) = self.prompt_usage.to_meta() {
                update = update.meta(turnery_meta(spent));
            }
            to.write_update(&SessionUpdate::UsageUpdate(update));
        }
    }
}

fn call_end(kind: &EventKind) -> Option<CallEndV2<'_>> {
    let EventKind::ToolExecutionEnd {
        envelope,
        disposition,
        child_loop_id,
        ..
    } = kind
    else {
        return None;
    };
    Some(CallEndV2 {
        envelope,
        disposition: *disposition,
        child_loop_id: child_loop_id.as_ref(),
    })
}

/// Encodes a whole message (V2-6, V2-11). Content for the model only is omitted.
fn encode_message(message: &LlmMessage, to: &mut UpdateWriter) {
    let id = message.message_id.as_str();
    let (voice, content) = match &message.message {
        Message::User { content } => (ChunkAuthor::User, content),
        Message::Assistant { content, .. } => (ChunkAuthor::Agent, content),
        Message::System { .. } | Message::ToolResult { .. } => return,
    };
    let thoughts: Vec<ContentBlock> = content.iter().filter_map(thinking_block).collect();
    if !thoughts.is_empty() {
        let message_update = AgentThought::new(id).content(thoughts);
        to.write_update(&SessionUpdate::AgentThought(message_update));
    }
    let blocks: Vec<ContentBlock> = content.iter().filter_map(message_block).collect();
    match voice {
        ChunkAuthor::User => to.write_update(&SessionUpdate::UserMessage(
            UserMessage::new(id).content(blocks),
        )),
        ChunkAuthor::Agent | ChunkAuthor::Thought if blocks.is_empty() => {}
        ChunkAuthor::Agent | ChunkAuthor::Thought => to.write_update(&SessionUpdate::AgentMessage(
            AgentMessage::new(id).content(blocks),
        )),
    }
}

fn thinking_block(content: &Content) -> Option<ContentBlock> {
    match content {
        Content::Thinking { text, .. } if !text.is_empty() => {
            Some(tool_call_view::text_block(text.as_str()))
        }
        Content::Thinking { .. }
        | Content::Text { .. }
        | Content::Image(_)
        | Content::Audio(_)
        | Content::ToolCall(_)
        | Content::Opaque { .. } => None,
    }
}

fn message_block(content: &Content) -> Option<ContentBlock> {
    match content {
        Content::Text { text } if text.is_empty() => None,
        Content::Text { .. }
        | Content::Thinking { .. }
        | Content::Image(_)
        | Content::Audio(_)
        | Content::ToolCall(_)
        | Content::Opaque { .. } => tool_call_view::encode_block(content),
    }
}

/// Returns the id of a compaction that starts with this event; the same live and replayed.
fn compaction_id(event: &Event) -> String {
    format!("{}.{}", event.loop_id, event.seq)
}

/// Encodes the whole plan. A session has one plan, so its id never changes.
fn encode_plan(session: &SessionId, entries: &[turnery_engine::PlanEntry]) -> SessionUpdate {
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
