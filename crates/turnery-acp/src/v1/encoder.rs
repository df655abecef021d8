//! Encodes changes of the view as v1 `session/update` notifications.

use crate::{
    client::features::OptionalUpdates,
    transport::update_writer::UpdateWriter,
    v1::{
        shared::{
            encode_block, encode_compaction_end, encode_compaction_start, encode_plan_entries,
            encode_session_info, meta_only_update,
        },
        tool_calls::ToolCallEncoderV1,
    },
    view::meta::{lineage_members, prompt_usage_meta},
};
use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, Cost, Plan, SessionUpdate, UsageUpdate,
};
use turnery_agent::view::{CURRENCY, ChunkAuthor, ContextUsage, MessageState, ViewChange};
use turnery_engine::{Content, LlmMessage, Message};

/// Encoder of one session.
#[derive(Debug, Default)]
pub(crate) struct EncoderV1 {
    optional_updates: OptionalUpdates,
    tool_calls: ToolCallEncoderV1,
}

impl EncoderV1 {
    /// Creates an encoder; `optional_updates` are those that the client supports.
    pub(crate) fn new(optional_updates: OptionalUpdates) -> Self {
        Self {
            optional_updates,
            ..Self::default()
        }
    }

    /// Writes the updates for a change.
    pub(crate) fn encode(&mut self, change: ViewChange<'_>, to: &mut UpdateWriter) {
        if change.call().is_some_and(|call| !call.is_shown()) {
            return;
        }
        let optional = self.optional_updates;
        match change {
            ViewChange::Text {
                author,
                message_id,
                text,
                ..
            } => to.write_text(author, message_id.as_str(), text),
            ViewChange::Message { message, state } => match (state, &message.message) {
                (MessageState::Streamed, _) => {}
                // The client shows the user's message itself.
                (MessageState::New, Message::User { .. }) => {}
                (MessageState::New | MessageState::Stored, _) => write_message(message, to),
            },
            // The value that a program or tool ended the loop with is a message of its own (rows 2, 3, 14, 15).
            ViewChange::Value { loop_id, text } => {
                to.write_text(ChunkAuthor::Agent, &format!("{loop_id}.value"), text);
            }
            ViewChange::CallRequested(call) => {
                to.write_update(&self.tool_calls.encode_requested(call));
            }
            ViewChange::CallChanged { call, before } => {
                write_some(self.tool_calls.encode_changed(call, before), to);
            }
            ViewChange::CallStarted(call) => to.write_update(&self.tool_calls.encode_started(call)),
            ViewChange::CallPrinted { call, text, at } => {
                write_some(self.tool_calls.encode_output(call, text, at), to);
            }
            ViewChange::CallProgressed(call) => {
                to.write_update(&self.tool_calls.encode_progress(call));
            }
            ViewChange::CallDelegated {
                call,
                child_session,
            } => to.write_update(&self.tool_calls.encode_child(call, child_session)),
            ViewChange::CallEnded { call, end } => {
                to.write_update(&self.tool_calls.encode_end(call, &end));
            }
            ViewChange::CallStored { call, end } => {
                to.write_update(&self.tool_calls.encode_stored(call, end.as_ref()));
            }
            ViewChange::Plan { entries, .. } => to.write_update(&SessionUpdate::Plan(Plan::new(
                encode_plan_entries(entries),
            ))),
            ViewChange::Lineage(lineage) => {
                to.write_update(&meta_only_update(lineage_members(&lineage)));
            }
            ViewChange::Usage(usage) => to.write_update(&encode_usage(&usage)),
            ViewChange::CompactionStarted { id, .. } => {
                to.write_update(&optional.encode_compaction(encode_compaction_start(id)));
            }
            ViewChange::CompactionEnded { id, block, failure } => {
                let update = encode_compaction_end(id, block, failure);
                to.write_update(&optional.encode_compaction(update));
            }
            ViewChange::Notice(notice) => to.write_update(&optional.encode_notice(&notice)),
            ViewChange::SessionInfo { title, updated_at } => {
                to.write_update(&encode_session_info(title, updated_at));
            }
            // The response to the request reports the end of a prompt, and permission requests ask the user.
            ViewChange::LoopStarted
            | ViewChange::LoopEnded(_)
            | ViewChange::QuestionAsked
            | ViewChange::QuestionAnswered
            | ViewChange::PromptEnded(_) => {}
        }
    }
}

fn write_some(update: Option<SessionUpdate>, to: &mut UpdateWriter) {
    if let Some(update) = update {
        to.write_update(&update);
    }
}

/// Writes a whole message. Engine notices and tool results are for the model only and are omitted.
fn write_message(message: &LlmMessage, to: &mut UpdateWriter) {
    let id = message.message_id.as_str();
    let (author, content) = match &message.message {
        Message::User { content } => (ChunkAuthor::User, content),
        Message::Assistant { content, .. } => (ChunkAuthor::Agent, content),
        Message::System { .. } | Message::ToolResult { .. } => return,
    };
    for item in content {
        match item {
            Content::Text { text } if text.is_empty() => {}
            Content::Text { text } => to.write_text(author, id, text),
            Content::Thinking { text, .. } if text.is_empty() => {}
            Content::Thinking { text, .. } => to.write_text(ChunkAuthor::Thought, id, text),
            Content::Image(_) | Content::Audio(_) | Content::Document(_) => {
                if let Some(block) = encode_block(item) {
                    to.write_update(&encode_chunk(author, id, block));
                }
            }
            Content::ToolCall(_) | Content::Opaque { .. } => {}
        }
    }
}

fn encode_chunk(author: ChunkAuthor, message_id: &str, block: ContentBlock) -> SessionUpdate {
    let chunk = ContentChunk::new(block).message_id(message_id);
    match author {
        ChunkAuthor::User => SessionUpdate::UserMessageChunk(chunk),
        ChunkAuthor::Agent => SessionUpdate::AgentMessageChunk(chunk),
        ChunkAuthor::Thought => SessionUpdate::AgentThoughtChunk(chunk),
    }
}

fn encode_usage(usage: &ContextUsage<'_>) -> SessionUpdate {
    let cost = usage.session_cost.amount();
    SessionUpdate::UsageUpdate(
        UsageUpdate::new(usage.used, usage.size)
            .cost(cost.map(|amount| Cost::new(amount, CURRENCY)))
            .meta(prompt_usage_meta(usage.prompt_usage)),
    )
}
