//! Encodes changes of the view as v2 `session/update` notifications.

use super::{session_state::StateReporter, shared, stop_reason, tool_calls::ToolCallEncoderV2};
use crate::{
    transport::update_writer::UpdateWriter,
    view::meta::{lineage_members, prompt_usage_meta},
};
use agent_client_protocol_schema::v2::{
    AgentMessage, AgentThought, ContentBlock, Cost, PlanUpdate, PlanUpdateContent, SessionUpdate,
    UsageUpdate, UserMessage,
};
use turnery_agent::view::{CURRENCY, ContextUsage, MessageState, ViewChange};
use turnery_engine::{Content, LlmMessage, Message};

/// Encoder of one session.
#[derive(Debug, Default)]
pub(crate) struct EncoderV2 {
    session_state: StateReporter,
    tool_calls: ToolCallEncoderV2,
}

impl EncoderV2 {
    /// Returns true if the last reported state is idle.
    pub(crate) fn is_idle(&self) -> bool {
        self.session_state.is_idle()
    }

    /// Writes the updates for a change.
    pub(crate) fn encode(&mut self, change: ViewChange<'_>, to: &mut UpdateWriter) {
        if change.call().is_some_and(|call| !call.is_shown()) {
            return;
        }
        match change {
            ViewChange::LoopStarted => self.session_state.begin_loop(to),
            ViewChange::Text {
                author,
                message_id,
                text,
                ..
            } => to.write_text(author, message_id.as_str(), text),
            ViewChange::Message { message, state } => match state {
                MessageState::Streamed => {}
                MessageState::New | MessageState::Stored => write_message(message, to),
            },
            ViewChange::Value { loop_id, text } => {
                let message = AgentMessage::new(format!("{loop_id}.value"))
                    .content(vec![shared::text_block(text)]);
                to.write_update(&SessionUpdate::AgentMessage(message));
            }
            ViewChange::CallRequested(call) => self.tool_calls.write_requested(call, to),
            ViewChange::CallChanged { call, before } => {
                self.tool_calls.write_changed(call, before, to);
            }
            ViewChange::CallStarted(call) => {
                self.session_state.begin_call(to);
                self.tool_calls.write_started(call, to);
            }
            ViewChange::CallPrinted { call, text, .. } => {
                self.tool_calls.write_output(call, text, to);
            }
            ViewChange::CallProgressed(call) => self.tool_calls.write_progress(call, to),
            ViewChange::CallDelegated {
                call,
                child_session,
            } => self.tool_calls.write_child(call, child_session, to),
            ViewChange::CallEnded { call, end } => {
                self.tool_calls.write_end(call, &end, to);
                if call.is_running {
                    self.session_state.end_call(to);
                }
            }
            ViewChange::CallStored { call, end } => {
                self.tool_calls.write_stored(call, end.as_ref(), to);
            }
            ViewChange::QuestionAsked => self.session_state.begin_question(to),
            ViewChange::QuestionAnswered => self.session_state.end_question(to),
            ViewChange::Plan {
                session_id,
                entries,
            } => {
                // A session has one plan, so its id never changes.
                let id = format!("{session_id}.plan");
                let plan = PlanUpdateContent::items(id, shared::encode_plan_entries(entries));
                to.write_update(&SessionUpdate::PlanUpdate(PlanUpdate::new(plan)));
            }
            ViewChange::Lineage(lineage) => {
                to.write_update(&shared::meta_only_update(lineage_members(&lineage)));
            }
            ViewChange::Usage(usage) => to.write_update(&encode_usage(&usage)),
            ViewChange::CompactionStarted { id, .. } => {
                let update = shared::encode_compaction_start(id);
                to.write_update(&SessionUpdate::CompactionUpdate(update));
            }
            ViewChange::CompactionEnded { id, block, failure } => {
                let update = shared::encode_compaction_end(id, block, failure);
                to.write_update(&SessionUpdate::CompactionUpdate(update));
            }
            ViewChange::Notice(notice) => to.write_update(&shared::encode_notice(
                shared::encode_severity(&notice),
                notice.title(),
                &notice.description(),
            )),
            ViewChange::SessionInfo { title, updated_at } => {
                to.write_update(&shared::encode_session_info(title, updated_at));
            }
            ViewChange::PromptEnded(end) => {
                let idle = stop_reason::encode_idle_state(end);
                self.session_state.become_idle(idle, to);
            }
            ViewChange::LoopEnded(_) => {}
        }
    }
}

fn encode_usage(usage: &ContextUsage<'_>) -> SessionUpdate {
    let mut update = UsageUpdate::new(usage.used, usage.size);
    if usage.session_cost.is_shown() {
        // A cost that became unknown clears the reported one.
        let cost = usage.session_cost.amount();
        update = update.cost(cost.map(|amount| Cost::new(amount, CURRENCY)));
    }
    if let Some(meta) = prompt_usage_meta(usage.prompt_usage) {
        update = update.meta(meta);
    }
    SessionUpdate::UsageUpdate(update)
}

/// Encodes a whole message (V2-6, V2-11). Content for the model only is omitted.
fn write_message(message: &LlmMessage, to: &mut UpdateWriter) {
    let id = message.message_id.as_str();
    let (is_user, content) = match &message.message {
        Message::User { content } => (true, content),
        Message::Assistant { content, .. } => (false, content),
        Message::System { .. } | Message::ToolResult { .. } => return,
    };
    let thoughts: Vec<ContentBlock> = content.iter().filter_map(thinking_block).collect();
    if !thoughts.is_empty() {
        let message_update = AgentThought::new(id).content(thoughts);
        to.write_update(&SessionUpdate::AgentThought(message_update));
    }
    let shown = content.iter().filter(|it| it.as_text() != Some(""));
    let blocks: Vec<ContentBlock> = shown.filter_map(shared::encode_block).collect();
    if is_user {
        let update = UserMessage::new(id).content(blocks);
        to.write_update(&SessionUpdate::UserMessage(update));
    } else if !blocks.is_empty() {
        let update = AgentMessage::new(id).content(blocks);
        to.write_update(&SessionUpdate::AgentMessage(update));
    }
}

fn thinking_block(content: &Content) -> Option<ContentBlock> {
    match content {
        Content::Thinking { text, .. } if !text.is_empty() => {
            Some(shared::text_block(text.as_str()))
        }
        Content::Thinking { .. }
        | Content::Text { .. }
        | Content::Image(_)
        | Content::Audio(_)
        | Content::Document(_)
        | Content::ToolCall(_)
        | Content::Opaque { .. } => None,
    }
}
