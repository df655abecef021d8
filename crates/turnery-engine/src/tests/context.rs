//! Tests of which messages the next request holds.

mod context_view;
mod loop_chain;
mod properties;

use super::compaction::conversation::ConversationBuilder;
use crate::{LoopId, LoopRecord, Outcome, Timestamp, TurnFinish};
use std::sync::Arc;

/// Returns a completed loop of the session `s`.
fn record(id: &str, parent: Option<&str>, talk: ConversationBuilder) -> LoopRecord {
    let begun = LoopRecord::new_running(
        "s".into(),
        id.into(),
        "agent".to_owned(),
        Timestamp::UNIX_EPOCH,
    );
    LoopRecord {
        parent_loop_id: parent.map(LoopId::from),
        messages: talk.messages,
        outcome: Some(Outcome::Finished(
            TurnFinish::AssistantMessage { text: "".into() },
            None,
        )),
        on_chain: true,
        ..begun
    }
}

/// Returns a loop with one prompt and one response.
fn exchange(id: &str, parent: Option<&str>, prompt: &str, answer: &str) -> Arc<LoopRecord> {
    let talk = ConversationBuilder::new(id)
        .user(prompt)
        .answer(answer, &[]);
    Arc::new(record(id, parent, talk))
}

/// Moves a loop into a frame.
fn in_frame(frame: &str, record: Arc<LoopRecord>) -> Arc<LoopRecord> {
    Arc::new(LoopRecord {
        frame_id: Some(frame.into()),
        ..Arc::unwrap_or_clone(record)
    })
}
