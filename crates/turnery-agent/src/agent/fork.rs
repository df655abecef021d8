//! Fork: a new session with a copy of what is stored of another one. The two then go their own ways.

use super::{Agent, OpenError, OpenRequest};
use crate::{Ports, Session};
use std::sync::Arc;
use turnery_engine::{
    CompactionBlock, Detail, Event, EventKind, Frame, FrameId, LlmMessage, LoopId, LoopRecord,
    MessageId, Outcome, SessionId,
};
use turnery_store::{Commit, NewSession, Owner, SessionInfo, StoreError};

impl Agent {
    /// Copy a session into a new one and open that. It holds all that was committed when this was
    /// called; a prompt that runs in the source meanwhile is not part of it. All ids of the copy are its
    /// own, but for those of tool calls, which say nothing of their session.
    pub async fn fork(
        &self,
        id: &SessionId,
        request: OpenRequest,
        ports: impl FnOnce(&SessionId) -> Ports + Send,
    ) -> Result<Session, OpenError> {
        let source = self.store.info(id).await?;
        let copy = self.copy(&source).await?;
        match self.open(&copy, request, false, ports).await {
            Ok(session) => Ok(session),
            Err(error) => {
                self.forget(&copy).await;
                Err(match error {
                    OpenError::OtherFolder { expected, .. } => OpenError::OtherFolder {
                        session: source.id,
                        expected,
                    },
                    other => other,
                })
            }
        }
    }

    async fn copy(&self, source: &SessionInfo) -> Result<SessionId, StoreError> {
        let id = SessionId::from(uuid::Uuid::now_v7().to_string());
        let loops = self.store.loops(&source.id, 0).await?;
        let new = NewSession {
            id: id.clone(),
            cwd: source.cwd.clone(),
            roots: source.roots.clone(),
            model: source.model.clone(),
            mode: source.mode.clone(),
            spawned_by: None,
            at: chrono::Utc::now(),
        };
        let made = self.store.create(new).await?;
        if !loops.is_empty()
            && let Err(error) = self.fill(source, &made, &loops).await
        {
            self.forget(&id).await;
            return Err(error);
        }
        Ok(id)
    }

    /// All loops in one commit, those off the chain too: others may follow from them.
    async fn fill(
        &self,
        source: &SessionInfo,
        made: &SessionInfo,
        loops: &[Arc<LoopRecord>],
    ) -> Result<(), StoreError> {
        let names = Names {
            old: format!("{}.", source.id),
            new: made.id.clone(),
        };
        let tip = source.tip_loop_id.as_ref();
        let tip = loops.iter().position(|it| Some(&it.loop_id) == tip);
        let opened = self.store.claim(&made.id, &Owner::this_process()).await?;
        let commit = Commit {
            lane: opened.lane,
            expected_head: made.head_version,
            records: loops.iter().map(|it| Arc::new(names.record(it))).collect(),
            tip: tip.unwrap_or_default(),
            title: source.title.clone(),
            release: true,
        };
        self.store.commit(commit).await.map(|_| ())
    }

    async fn forget(&self, id: &SessionId) {
        if let Err(error) = self.store.delete(id).await {
            tracing::warn!("half a copy of a session is left: {error}");
        }
    }
}

/// How ids of the source become ids of the copy: those that begin with its own id are renamed.
struct Names {
    /// With the dot that follows it in every id made from it.
    old: String,
    new: SessionId,
}

impl Names {
    fn renamed(&self, id: &str) -> Option<String> {
        let rest = id.strip_prefix(&self.old)?;
        Some(format!("{}.{rest}", self.new))
    }

    fn loop_id(&self, id: &mut LoopId) {
        if let Some(renamed) = self.renamed(id.as_str()) {
            *id = renamed.into();
        }
    }

    fn message_id(&self, id: &mut MessageId) {
        if let Some(renamed) = self.renamed(id.as_str()) {
            *id = renamed.into();
        }
    }

    fn frame_id(&self, id: &mut FrameId) {
        if let Some(renamed) = self.renamed(id.as_str()) {
            *id = renamed.into();
        }
    }

    fn frame(&self, frame: &mut Frame) {
        self.frame_id(&mut frame.frame_id);
        frame
            .parent_frame_id
            .iter_mut()
            .for_each(|id| self.frame_id(id));
        self.loop_id(&mut frame.opened_by);
    }

    fn message(&self, message: &mut Arc<LlmMessage>) {
        let mut copy = LlmMessage::clone(message);
        self.message_id(&mut copy.message_id);
        if let Some(turn) = &mut copy.turn_id {
            self.loop_id(&mut turn.loop_id);
        }
        *message = Arc::new(copy);
    }

    fn block(&self, block: &mut CompactionBlock) {
        block
            .keep_first
            .iter_mut()
            .for_each(|id| self.message_id(id));
        block
            .keep_compacted
            .iter_mut()
            .for_each(|it| self.message(it));
        for kept in &mut block.keep_recent {
            self.message_id(&mut kept.message_id);
            kept.shortened.iter_mut().for_each(|it| self.message(it));
        }
        self.message_id(&mut block.through);
    }

    fn outcome(&self, outcome: &mut Outcome) {
        match outcome {
            Outcome::FrameSwitch { frame_id, .. } => {
                if let Some(renamed) = self.renamed(frame_id) {
                    *frame_id = renamed;
                }
            }
            Outcome::Finished(_) | Outcome::Stopped(_) => {}
        }
    }

    fn detail(&self, detail: &mut Detail) {
        match detail {
            Detail::Continued { loop_id } => self.loop_id(loop_id),
            Detail::Limit { .. }
            | Detail::Provider { .. }
            | Detail::Refusal
            | Detail::Rejection { .. }
            | Detail::Runtime { .. } => {}
        }
    }

    fn record(&self, record: &LoopRecord) -> LoopRecord {
        let mut copy = record.clone();
        copy.session_id = self.new.clone();
        self.loop_id(&mut copy.loop_id);
        copy.parent_loop_id
            .iter_mut()
            .for_each(|id| self.loop_id(id));
        copy.frame_id.iter_mut().for_each(|id| self.frame_id(id));
        copy.frame.iter_mut().for_each(|frame| self.frame(frame));
        copy.outcome.iter_mut().for_each(|it| self.outcome(it));
        copy.detail.iter_mut().for_each(|it| self.detail(it));
        copy.messages.iter_mut().for_each(|it| self.message(it));
        copy.compaction_block
            .iter_mut()
            .for_each(|it| self.block(it));
        if let Some(group) = &mut copy.parallel_group {
            group
                .all_loop_ids
                .iter_mut()
                .for_each(|id| self.loop_id(id));
            self.loop_id(&mut group.selected_loop_id);
        }
        for turn in &mut copy.turns {
            self.loop_id(&mut turn.turn_id.loop_id);
            turn.input_messages
                .iter_mut()
                .for_each(|id| self.message_id(id));
            turn.output_message
                .iter_mut()
                .for_each(|id| self.message_id(id));
            turn.tool_results
                .iter_mut()
                .for_each(|id| self.message_id(id));
        }
        copy.events.iter_mut().for_each(|event| self.event(event));
        copy
    }

    fn event(&self, event: &mut Event) {
        event.session_id = self.new.clone();
        self.loop_id(&mut event.loop_id);
        match &mut event.kind {
            EventKind::LoopStart {
                parent_loop_id,
                frame_id,
                frame,
                ..
            } => {
                parent_loop_id.iter_mut().for_each(|id| self.loop_id(id));
                frame_id.iter_mut().for_each(|id| self.frame_id(id));
                frame.iter_mut().for_each(|frame| self.frame(frame));
            }
            EventKind::CompactionEnded { block, .. } => {
                block.iter_mut().for_each(|block| self.block(block));
            }
            EventKind::MessageStart { message_id } | EventKind::Delta { message_id, .. } => {
                self.message_id(message_id);
            }
            EventKind::MessageEnd { message } => self.message(message),
            EventKind::TurnEnd { tool_results, .. } => {
                tool_results.iter_mut().for_each(|id| self.message_id(id));
            }
            EventKind::LoopEnd {
                outcome, detail, ..
            } => {
                self.outcome(outcome);
                detail.iter_mut().for_each(|it| self.detail(it));
            }
            // What ran in a child session keeps the name it has there.
            EventKind::ToolExecutionEnd { .. }
            | EventKind::ChildUsageReported { .. }
            | EventKind::InputRejected { .. }
            | EventKind::TurnStart { .. }
            | EventKind::CompactionStarted { .. }
            | EventKind::ModelRetried { .. }
            | EventKind::Issue { .. }
            | EventKind::UsageReported { .. }
            | EventKind::ToolCallRequested { .. }
            | EventKind::PermissionRequested { .. }
            | EventKind::PermissionResolved { .. }
            | EventKind::ToolExecutionStart { .. }
            | EventKind::ToolExecutionUpdate { .. }
            | EventKind::ToolExecutionOutput { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::FinalValue { .. }
            | EventKind::ToolValue { .. }
            | EventKind::PlanUpdated { .. } => {}
        }
    }
}
