//! Plans the first loop of a prompt: its parent and how it continues from there (LOOP-16 to LOOP-23).

use super::{ContinueError, PromptError, SessionHistory, command::PromptKind, task::SessionTask};
use chrono::SecondsFormat;
use std::sync::Arc;
use turnery_engine::{
    CommitError, Content, ContinuationKind, Frame, FrameId, LoopId, LoopRecord, Message,
    TurnTrigger,
    context::{loop_chain, previous_loop},
};

/// Plan of a loop that is about to begin.
#[derive(Clone)]
pub(crate) struct LoopPlan {
    pub(crate) kind: ContinuationKind,
    pub(crate) trigger: TurnTrigger,
    pub(crate) parent: Option<LoopId>,
    pub(crate) input: Vec<Content>,
    pub(crate) tag: Option<String>,
    pub(crate) frame_id: Option<FrameId>,
    /// Frame that starts with this loop.
    pub(crate) frame: Option<Frame>,
    /// Ids of all loops of the parallel group, including this one; empty if it runs alone.
    pub(crate) parallel_group: Vec<LoopId>,
    /// History to continue from, if not the session's current one.
    pub(crate) base_history: Option<SessionHistory>,
}

impl LoopPlan {
    fn new(kind: ContinuationKind, trigger: TurnTrigger, parent: Option<LoopId>) -> Self {
        Self {
            kind,
            trigger,
            parent,
            input: Vec::new(),
            tag: None,
            frame_id: None,
            frame: None,
            parallel_group: Vec::new(),
            base_history: None,
        }
    }

    /// Plans the loop that applies the changes of a winner, whose loop is this.
    pub(crate) fn after_winner(winner: LoopId, frame_id: Option<FrameId>) -> Self {
        Self {
            frame_id,
            ..Self::new(
                ContinuationKind::Default,
                TurnTrigger::Continuation,
                Some(winner),
            )
        }
    }

    /// Plans the first loop of a frame: the model sees only its task (LASH-12).
    pub(crate) fn for_frame(frame: Frame) -> Self {
        let parent = Some(frame.opened_by.clone());
        Self {
            input: vec![Content::text(&frame.task)],
            frame_id: Some(frame.frame_id.clone()),
            frame: Some(frame),
            base_history: Some(SessionHistory::default()),
            ..Self::new(ContinuationKind::Default, TurnTrigger::Continuation, parent)
        }
    }
}

impl SessionTask {
    pub(crate) async fn plan_loop(&mut self, kind: PromptKind) -> Result<LoopPlan, PromptError> {
        let tip = self.conversation.info.tip_loop_id.clone();
        let mut plan = match kind {
            PromptKind::Input(input) => return Ok(self.plan_input(input)),
            // Resolved before planning; if that was cancelled, the command is sent as typed.
            PromptKind::McpPrompt {
                command,
                args,
                mut extra_content,
            } => {
                let typed = format!("/{command} {args}");
                extra_content.insert(0, Content::text(typed.trim_end()));
                return Ok(self.plan_input(extra_content));
            }
            PromptKind::Continue => {
                check_can_continue(&self.conversation.history)?;
                LoopPlan::new(ContinuationKind::Default, TurnTrigger::Continuation, tip)
            }
            PromptKind::Compact => {
                if self.conversation.history.messages().is_empty() {
                    return Err(ContinueError::ContextEmpty.into());
                }
                LoopPlan::new(ContinuationKind::Compaction, TurnTrigger::Continuation, tip)
            }
            PromptKind::Rerun(which) => return self.plan_rerun(which).await,
            PromptKind::Branch(from, input) => return self.plan_branch(from, input).await,
        };
        plan.frame_id.clone_from(&self.conversation.frame_id);
        Ok(plan)
    }

    /// Plans the first loop of a prompt with new input.
    pub(super) fn plan_input(&self, input: Vec<Content>) -> LoopPlan {
        let tip = self.conversation.info.tip_loop_id.clone();
        LoopPlan {
            input,
            frame_id: self.conversation.frame_id.clone(),
            ..LoopPlan::new(ContinuationKind::Initial, TurnTrigger::User, tip)
        }
    }

    async fn plan_rerun(&mut self, which: Option<LoopId>) -> Result<LoopPlan, PromptError> {
        let loops = self.load_loops().await?;
        let record = match which {
            Some(id) => find_loop(&loops, &id)?,
            None => last_prompted_loop(&loops, self.conversation.info.tip_loop_id.as_ref())
                .ok_or(ContinueError::NothingToRerun)?,
        };
        let chain = match faulty!(KeepLoopInItsRerun) {
            true => loop_chain(&loops, Some(&record.loop_id)),
            false => loop_chain(&loops, previous_loop(&loops, record)),
        };
        let base = SessionHistory::from_chain(&chain);
        let input = loop_input(record);
        if input.is_empty() {
            check_can_continue(&base)?;
        }
        Ok(LoopPlan {
            input,
            tag: Some(timestamp_tag()),
            frame_id: record.frame_id.clone(),
            frame: record.frame.clone(),
            base_history: Some(base),
            ..LoopPlan::new(
                ContinuationKind::Rerun,
                TurnTrigger::Continuation,
                Some(record.loop_id.clone()),
            )
        })
    }

    async fn plan_branch(
        &mut self,
        from: LoopId,
        input: Vec<Content>,
    ) -> Result<LoopPlan, PromptError> {
        let loops = self.load_loops().await?;
        let record = find_loop(&loops, &from)?;
        let chain = loop_chain(&loops, Some(&from));
        Ok(LoopPlan {
            input,
            tag: Some(timestamp_tag()),
            frame_id: record.frame_id.clone(),
            base_history: Some(SessionHistory::from_chain(&chain)),
            ..LoopPlan::new(ContinuationKind::Branch, TurnTrigger::Branch, Some(from))
        })
    }

    async fn load_loops(&mut self) -> Result<Vec<Arc<LoopRecord>>, PromptError> {
        let loops = self.env.store.loops(&self.conversation.info.id, 0).await;
        loops.map_err(|error| PromptError::Lost(CommitError::Store(error.to_string())))
    }
}

/// Checks that the model can continue without new input (UP-15).
fn check_can_continue(history: &SessionHistory) -> Result<(), ContinueError> {
    match history.messages().last() {
        None => Err(ContinueError::ContextEmpty),
        Some(last) => match last.message {
            Message::Assistant { .. } => Err(ContinueError::Answered),
            Message::System { .. } | Message::User { .. } | Message::ToolResult { .. } => Ok(()),
        },
    }
}

fn find_loop<'l>(
    loops: &'l [Arc<LoopRecord>],
    id: &LoopId,
) -> Result<&'l LoopRecord, ContinueError> {
    let found = loops.iter().find(|record| record.loop_id == *id);
    found
        .map(|record| &**record)
        .ok_or_else(|| ContinueError::NoSuchLoop(id.clone()))
}

/// Returns the loop to rerun by default: the result of the last prompt, whether stored as the tip, or
/// rejected or interrupted after it.
fn last_prompted_loop<'l>(
    loops: &'l [Arc<LoopRecord>],
    tip: Option<&LoopId>,
) -> Option<&'l LoopRecord> {
    let prompted = |record: &&Arc<LoopRecord>| match record.continuation_kind {
        ContinuationKind::Compaction => false,
        ContinuationKind::Initial
        | ContinuationKind::Default
        | ContinuationKind::Rerun
        | ContinuationKind::Branch => true,
    };
    // A loop that was announced but never began cannot be rerun.
    let begun = |record: &&Arc<LoopRecord>| record.prompt_id.is_some() || record.on_chain;
    let newest = loops.iter().rev().filter(begun).find(prompted)?;
    if !newest.on_chain && newest.parent_loop_id.as_ref() == tip {
        return Some(newest);
    }
    let mut next = tip;
    for _ in loops {
        let record = loops.iter().find(|it| Some(&it.loop_id) == next)?;
        if prompted(&record) {
            return Some(record);
        }
        next = record.parent_loop_id.as_ref();
    }
    None
}

/// Returns the input with which the loop began.
fn loop_input(record: &LoopRecord) -> Vec<Content> {
    let Some(turn) = record.turns.first() else {
        // The loop may have been rejected before its first turn, or predate the recording of turns.
        let first = record.messages.first().map(|message| &message.message);
        return match first {
            Some(Message::User { content }) => content.clone(),
            Some(
                Message::System { .. } | Message::Assistant { .. } | Message::ToolResult { .. },
            )
            | None => Vec::new(),
        };
    };
    let inputs = record.messages.iter();
    let inputs = inputs.filter(|message| turn.input_messages.contains(&message.message_id));
    inputs
        .filter_map(|message| match &message.message {
            Message::User { content } => Some(content.clone()),
            Message::System { .. } | Message::Assistant { .. } | Message::ToolResult { .. } => None,
        })
        .flatten()
        .collect()
}

/// Tag that distinguishes reruns and branches of the same parent (UP-16).
fn timestamp_tag() -> String {
    turnery_store::now().to_rfc3339_opts(SecondsFormat::Millis, true)
}
