//! Tests of context: which messages the next request holds.

mod chains;
mod laws;
mod views;

use super::compaction::talk::Talk;
use crate::{LoopId, LoopRecord, Outcome, Timestamp, TurnFinish};
use std::sync::Arc;

/// A loop of the session `s` that ended well.
fn record(id: &str, parent: Option<&str>, talk: Talk) -> LoopRecord {
    let begun = LoopRecord::begun(
        "s".into(),
        id.into(),
        "agent".to_owned(),
        Timestamp::UNIX_EPOCH,
    );
    LoopRecord {
        parent_loop_id: parent.map(LoopId::from),
        messages: talk.messages,
        outcome: Some(Outcome::Finished(TurnFinish::AssistantMessage {
            text: "".into(),
        })),
        on_chain: true,
        ..begun
    }
}

/// A loop in which the user says `prompt` and the model answers `answer`.
fn exchange(id: &str, parent: Option<&str>, prompt: &str, answer: &str) -> Arc<LoopRecord> {
    let talk = Talk::of(id).user(prompt).answer(answer, &[]);
    Arc::new(record(id, parent, talk))
}

/// The same loop in a frame.
fn within(frame: &str, record: Arc<LoopRecord>) -> Arc<LoopRecord> {
    Arc::new(LoopRecord {
        frame_id: Some(frame.into()),
        ..Arc::unwrap_or_clone(record)
    })
}
