//! Encodes agent events as v1 `session/update` notifications, live and replayed.

use crate::{
    client::features::OptionalUpdates,
    transport::update_writer::{ChunkAuthor, UpdateWriter},
    v1::{
        notices::meta_only_update,
        tool_call_view,
        tool_calls::{CallEndV1, ToolCallsV1},
    },
    view::{
        meta::turnery_meta,
        prompt_usage::PromptUsage,
        session_cost::{self, SessionCost},
    },
};
use agent_client_protocol_schema::v1::{
    Cost, NoticeSeverity, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate,
    UsageUpdate,
};
use serde_json::{Value, json};
use turnery_engine::{
    Content, ContinuationKind, Event, EventKind, LlmMessage, Message, MessageId, PlanPriority,
    PlanStatus, StreamDelta, Usage, render_value,
};
use turnery_tools::visible_line;

/// Encoder of one session: remembers what the client was shown of the running loop.
#[derive(Debug, Default)]
pub(crate) struct EncoderV1 {
    optional_updates: OptionalUpdates,
    tool_calls: ToolCallsV1,
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

impl EncoderV1 {
    pub(crate) fn new(takes: OptionalUpdates, session_cost: SessionCost) -> Self {
        Self {
            optional_updates: takes,
            session_cost,
            ..Self::default()
        }
    }

    /// Encodes an event as it happens.
    pub(crate) fn encode_live(&mut self, event: &Event, to: &mut UpdateWriter) {
        match &event.kind {
            EventKind::Delta { message_id, delta } => match delta {
                StreamDelta::Text { text, .. } => {
                    to.write_text(ChunkAuthor::Agent, message_id.as_str(), text);
                    self.mark_streamed(message_id);
                }
                StreamDelta::Thinking { text, .. } => {
                    to.write_text(ChunkAuthor::Thought, message_id.as_str(), text);
                    self.mark_streamed(message_id);
                }
                StreamDelta::ToolCallArgs { .. } => {}
            },
            EventKind::MessageEnd { message } => {
                if self.streamed_message.take().as_ref() != Some(&message.message_id)
                    && matches!(message.message, Message::Assistant { .. })
                {
                    encode_message(message, to);
                }
            }
            EventKind::ToolCallRequested { call, detail } => {
                self.tool_calls.register(call, detail);
                write_update(self.tool_calls.encode_call(&call.call_id), to);
            }
            EventKind::PermissionRequested { call_id, detail }
            | EventKind::ToolExecutionUpdate { call_id, detail } => {
                write_update(self.tool_calls.update_detail(call_id, detail), to);
            }
            EventKind::ToolExecutionStart { call_id, runs, .. } => {
                if *runs {
                    write_update(self.tool_calls.encode_start(call_id), to);
                }
            }
            EventKind::ToolExecutionOutput { call_id, text } => {
                write_update(self.tool_calls.append_output(call_id, text, event.at), to);
            }
            EventKind::ToolProgress { call_id, text } => {
                write_update(self.tool_calls.set_progress(call_id, text), to);
            }
            EventKind::ToolExecutionEnd { call_id, .. } => {
                if let Some(ended) = CallEndV1::from_event(&event.kind) {
                    write_update(self.tool_calls.encode_end(call_id, &ended), to);
                }
            }
            EventKind::PlanUpdated { entries } => to.write_update(&encode_plan(entries)),
            EventKind::LoopStart { .. } => self.begin_loop(event, to),
            EventKind::UsageReported { usage, cumulative } => {
                self.record_context(usage.as_ref());
                self.prompt_usage.record_turn(*cumulative);
                self.session_cost.record_call(usage.as_ref());
                self.encode_usage(to);
            }
            EventKind::ChildUsageReported { call_id, child } => {
                write_update(
                    self.tool_calls
                        .set_child_session(call_id, &child.session_id),
                    to,
                );
                self.prompt_usage.record_child(child);
                self.session_cost.record_child(child);
                self.encode_usage(to);
            }
            EventKind::CompactionStarted { .. } => {
                let id = self.running_compaction.insert(compaction_id(event));
                to.write_update(&self.optional_updates.encode_compaction_start(id));
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
                let ended = self.optional_updates.encode_compaction_end(
                    &id,
                    block.as_ref(),
                    failure.as_deref(),
                );
                to.write_update(&ended);
                self.context_tokens = Some(after.tokens);
                self.encode_usage(to);
            }
            // The cost of rejected candidates is not in the events.
            EventKind::ParallelEnd { .. } => self.session_cost.invalidate(),
            EventKind::ModelRetried {
                attempt,
                error: fault,
                wait_ms,
            } => to.write_update(
                &self
                    .optional_updates
                    .encode_retry(*attempt, fault, *wait_ms),
            ),
            EventKind::ModelSilent {
                silent_ms,
                is_connected,
            } => to.write_update(
                &self
                    .optional_updates
                    .encode_silence(*silent_ms, *is_connected),
            ),
            EventKind::Issue { text } => {
                let title = "Something went wrong";
                to.write_update(&self.optional_updates.encode_notice(
                    NoticeSeverity::Warning,
                    title,
                    text,
                ));
            }
            EventKind::InputRejected { reason } => {
                let title = "The input was refused";
                to.write_update(&self.optional_updates.encode_notice(
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
                    to.write_update(&self.optional_updates.encode_notice(
                        NoticeSeverity::Warning,
                        title,
                        &limit.text,
                    ));
                }
            }
            EventKind::TurnStart { .. }
            | EventKind::MessageStart { .. }
            | EventKind::PermissionResolved { .. }
            | EventKind::ParallelStart { .. }
            | EventKind::TurnEnd { .. } => {}
        }
    }

    /// Encodes a stored event. Streamed text is sent as whole messages, calls in their final state (LOAD-1,
    /// LOAD-7); notices are omitted (LOAD-6).
    pub(crate) fn encode_replay(&mut self, event: &Event, to: &mut UpdateWriter) {
        match &event.kind {
            EventKind::MessageEnd { message } => encode_message(message, to),
            EventKind::ToolCallRequested { call, detail } => self.tool_calls.register(call, detail),
            EventKind::PermissionRequested { call_id, detail }
            | EventKind::ToolExecutionUpdate { call_id, detail } => {
                let _ = self.tool_calls.update_detail(call_id, detail);
            }
            EventKind::ToolExecutionEnd { call_id, .. } => {
                if let Some(ended) = CallEndV1::from_event(&event.kind) {
                    write_update(self.tool_calls.encode_replayed(call_id, &ended), to);
                }
            }
            EventKind::PlanUpdated { entries } => to.write_update(&encode_plan(entries)),
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
                    to.write_update(&self.optional_updates.encode_compaction_end(
                        &id,
                        block.as_ref(),
                        None,
                    ));
                }
                self.context_tokens = Some(after.tokens);
            }
            EventKind::FinalValue { value } | EventKind::ToolValue { value, .. } => {
                self.encode_value(value, event, to);
            }
            EventKind::LoopEnd { outcome, .. } => {
                for call in self.tool_calls.drain_unfinished() {
                    to.write_update(&call);
                }
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

    /// Starts a loop.
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
        if let Some(members) = lineage_meta(event) {
            to.write_update(&meta_only_update(members));
        }
    }

    /// Shows the value a program or tool ended the loop with as text, once (rows 2, 3, 14, 15).
    fn encode_value(&mut self, value: &Value, event: &Event, to: &mut UpdateWriter) {
        let text = render_value(value);
        if !std::mem::replace(&mut self.is_value_shown, true) && !text.is_empty() {
            to.write_text(
                ChunkAuthor::Agent,
                &format!("{}.value", event.loop_id),
                &text,
            );
        }
    }

    fn mark_streamed(&mut self, message_id: &MessageId) {
        if self.streamed_message.as_ref() != Some(message_id) {
            self.streamed_message = Some(message_id.clone());
        }
    }

    fn record_context(&mut self, usage: Option<&Usage>) {
        if let Some(usage) = usage {
            self.context_tokens = Some(usage.context_tokens());
        }
    }

    /// Reports context usage if both numbers are known (USAGE-1). Usage of child sessions does not count
    /// towards the context; it is reported separately.
    fn encode_usage(&self, to: &mut UpdateWriter) {
        if let (Some(used), Some(window)) = (self.context_tokens, self.context_window) {
            let size = used.max(u64::from(window));
            let cost = self.session_cost.amount();
            let update = UsageUpdate::new(used, size)
                .cost(cost.map(|amount| Cost::new(amount, session_cost::CURRENCY)))
                .meta(self.prompt_usage.to_meta().map(turnery_meta));
            to.write_update(&SessionUpdate::UsageUpdate(update));
        }
    }
}

fn write_update(update: Option<SessionUpdate>, to: &mut UpdateWriter) {
    if let Some(update) = update {
        to.write_update(&update);
    }
}

/// Encodes a whole message. Engine notices and tool results are for the model only and are omitted.
fn encode_message(message: &LlmMessage, to: &mut UpdateWriter) {
    let id = message.message_id.as_str();
    let (voice, content) = match &message.message {
        Message::User { content } => (ChunkAuthor::User, content),
        Message::Assistant { content, .. } => (ChunkAuthor::Agent, content),
        Message::System { .. } | Message::ToolResult { .. } => return,
    };
    for item in content {
        match item {
            Content::Text { text } if text.is_empty() => {}
            Content::Text { text } => to.write_text(voice, id, text),
            Content::Thinking { text, .. } if text.is_empty() => {}
            Content::Thinking { text, .. } => to.write_text(ChunkAuthor::Thought, id, text),
            Content::Image(_) | Content::Audio(_) => {
                if let Some(block) = tool_call_view::encode_block(item) {
                    to.write_block(voice, id, block);
                }
            }
            Content::ToolCall(_) | Content::Opaque { .. } => {}
        }
    }
}

/// Returns the `_meta` of a loop that continues, retries, branches or opens a frame: the protocol has no
/// update for these.
pub(crate) fn lineage_meta(event: &Event) -> Option<Value> {
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
    let mut members = json!({"loopId": event.loop_id, "continuationKind": continuation_kind});
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
            members[key] = value.into();
        }
    }
    Some(json!({ "loop": members }))
}

/// Returns the id of a compaction that starts with this event; the same live and replayed (COMP-2).
fn compaction_id(event: &Event) -> String {
    format!("{}.{}", event.loop_id, event.seq)
}

/// Encodes the whole plan (PLAN-2).
fn encode_plan(entries: &[turnery_engine::PlanEntry]) -> SessionUpdate {
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
