//! Holds what a session task knows of its stored session.

use super::{SessionHistory, system_prompt::SystemPrompt};
use std::sync::Arc;
use turnery_engine::{FrameId, LoopId, LoopRecord, LoopStatus};
use turnery_store::SessionInfo;

/// Working copy of a session: its stored info, the messages that the model sees, and the current frame.
#[derive(Clone)]
pub(crate) struct Conversation {
    pub(crate) info: SessionInfo,
    pub(crate) history: SessionHistory,
    pub(crate) system: SystemPrompt,
    /// True until the first prompt after the session was opened with messages.
    pub(crate) is_reopened: bool,
    /// Current frame; `None` is the first.
    pub(crate) frame_id: Option<FrameId>,
    /// Number of the last loop that was shown but not stored; never reused (LOOP-10).
    pub(crate) last_lost_loop: u64,
    /// Interrupted loops at the end of the active branch. The effects of their calls are stored with the next loop there:
    /// the model was told that the calls were done.
    pub(crate) interrupted: Vec<LoopId>,
}

impl Conversation {
    /// Creates the conversation of a session whose active branch has these loops.
    pub(crate) fn new(info: SessionInfo, system: SystemPrompt, chain: &[Arc<LoopRecord>]) -> Self {
        let mut conversation = Self {
            info,
            history: SessionHistory::default(),
            system,
            is_reopened: !chain.is_empty(),
            frame_id: None,
            last_lost_loop: 0,
            interrupted: Vec::new(),
        };
        conversation.continue_from(chain);
        conversation
    }

    /// Replaces the history and the system prompt by those of these loops. Call ids that the client has seen stay taken.
    pub(crate) fn continue_from(&mut self, chain: &[Arc<LoopRecord>]) {
        self.system.continue_from(chain);
        let mut history = SessionHistory::from_chain(chain);
        history.remember_calls(&self.history);
        self.history = history;
        self.frame_id = chain.last().and_then(|last| last.frame_id.clone());
        let ids = chain.iter().rev().map_while(|record| {
            let is_interrupted =
                record.status == LoopStatus::Aborted && record.copied_from.is_none();
            is_interrupted.then(|| record.loop_id.clone())
        });
        self.interrupted = ids.collect();
    }

    /// Notes that a loop was stored, as this version of the session. The history is not changed.
    pub(crate) fn advance(&mut self, head: u64, record: &LoopRecord) {
        self.info.head_version = head;
        self.info.updated_at = turnery_store::now();
        if record.on_chain {
            self.info.tip_loop_id = Some(record.loop_id.clone());
            self.frame_id.clone_from(&record.frame_id);
            self.interrupted.clear();
            self.system.advance(record);
        }
    }

    /// Returns the highest loop number known here; the store may have higher ones.
    pub(crate) fn last_known_loop_number(&self) -> u64 {
        let tip = self.info.tip_loop_id.as_ref();
        tip.and_then(LoopId::number)
            .unwrap_or_default()
            .max(self.last_lost_loop)
    }
}
