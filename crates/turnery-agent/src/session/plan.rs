//! Plan: which loop a prompt begins with: what it follows, and how (LOOP-16 to LOOP-23).

use super::{ContinueError, History, PromptError, Task, mail::Work};
use chrono::SecondsFormat;
use std::sync::Arc;
use turnery_engine::{
    CommitFault, Content, ContinuationKind, Frame, FrameId, LoopId, LoopRecord, Message,
    TurnTrigger,
    context::{before, chain},
};

/// A loop that is about to begin.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) kind: ContinuationKind,
    pub(crate) trigger: TurnTrigger,
    pub(crate) parent: Option<LoopId>,
    pub(crate) input: Vec<Content>,
    pub(crate) tag: Option<String>,
    pub(crate) frame_id: Option<FrameId>,
    /// The frame that the loop opens.
    pub(crate) frame: Option<Frame>,
    /// The loops that are tried beside each other, this one among them; none if it runs alone.
    pub(crate) group: Vec<LoopId>,
    /// What it goes on from, if that is not what the session stands at.
    pub(crate) base: Option<History>,
}

impl Plan {
    fn new(kind: ContinuationKind, trigger: TurnTrigger, parent: Option<LoopId>) -> Self {
        Self {
            kind,
            trigger,
            parent,
            input: Vec::new(),
            tag: None,
            frame_id: None,
            frame: None,
            group: Vec::new(),
            base: None,
        }
    }

    /// The first loop of a frame that another loop opened: its task is all that is seen (LASH-12).
    pub(crate) fn frame(frame: Frame) -> Self {
        let parent = Some(frame.opened_by.clone());
        Self {
            input: vec![Content::text(&frame.task)],
            frame_id: Some(frame.frame_id.clone()),
            frame: Some(frame),
            base: Some(History::default()),
            ..Self::new(ContinuationKind::Default, TurnTrigger::Continuation, parent)
        }
    }
}

impl Task {
    /// The first loop for this work.
    pub(crate) async fn plan(&mut self, work: Work) -> Result<Plan, PromptError> {
        let tip = self.info.tip_loop_id.clone();
        let mut plan = match work {
            Work::Say(input) => return Ok(self.plan_input(input)),
            // Resolved before a plan is made; what could not be is said as it was typed.
            Work::Server {
                command,
                typed,
                mut rest,
            } => {
                let typed = format!("/{command} {typed}");
                rest.insert(0, Content::text(typed.trim_end()));
                return Ok(self.plan_input(rest));
            }
            Work::Continue => {
                can_go_on(&self.history)?;
                Plan::new(ContinuationKind::Default, TurnTrigger::Continuation, tip)
            }
            Work::Compact => {
                if self.history.messages().is_empty() {
                    return Err(ContinueError::ContextEmpty.into());
                }
                Plan::new(ContinuationKind::Compaction, TurnTrigger::Continuation, tip)
            }
            Work::Rerun(which) => return self.plan_rerun(which).await,
            Work::Branch(from, input) => return self.plan_branch(from, input).await,
        };
        plan.frame_id.clone_from(&self.frame_id);
        Ok(plan)
    }

    /// The first loop of a prompt that says this.
    pub(super) fn plan_input(&self, input: Vec<Content>) -> Plan {
        let tip = self.info.tip_loop_id.clone();
        Plan {
            input,
            frame_id: self.frame_id.clone(),
            ..Plan::new(ContinuationKind::Initial, TurnTrigger::User, tip)
        }
    }

    async fn plan_rerun(&mut self, which: Option<LoopId>) -> Result<Plan, PromptError> {
        let loops = self.loops().await?;
        let record = match which {
            Some(id) => find(&loops, &id)?,
            None => {
                last(&loops, self.info.tip_loop_id.as_ref()).ok_or(ContinueError::NothingToRerun)?
            }
        };
        let chain = match faulty!(RerunSeesItself) {
            true => chain(&loops, Some(&record.loop_id)),
            false => chain(&loops, before(&loops, record)),
        };
        let base = History::of(&chain);
        let input = input_of(record);
        if input.is_empty() {
            can_go_on(&base)?;
        }
        Ok(Plan {
            input,
            tag: Some(now()),
            frame_id: record.frame_id.clone(),
            frame: record.frame.clone(),
            base: Some(base),
            ..Plan::new(
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
    ) -> Result<Plan, PromptError> {
        let loops = self.loops().await?;
        let record = find(&loops, &from)?;
        let chain = chain(&loops, Some(&from));
        Ok(Plan {
            input,
            tag: Some(now()),
            frame_id: record.frame_id.clone(),
            base: Some(History::of(&chain)),
            ..Plan::new(ContinuationKind::Branch, TurnTrigger::Branch, Some(from))
        })
    }

    async fn loops(&mut self) -> Result<Vec<Arc<LoopRecord>>, PromptError> {
        let loops = self.store.loops(&self.info.id, 0).await;
        loops.map_err(|error| PromptError::Lost(CommitFault::Store(error.to_string())))
    }
}

/// Whether the model may be asked to go on without anything new (UP-15).
fn can_go_on(history: &History) -> Result<(), ContinueError> {
    match history.messages().last() {
        None => Err(ContinueError::ContextEmpty),
        Some(last) => match last.message {
            Message::Assistant { .. } => Err(ContinueError::Answered),
            Message::System { .. } | Message::User { .. } | Message::ToolResult { .. } => Ok(()),
        },
    }
}

fn find<'l>(loops: &'l [Arc<LoopRecord>], id: &LoopId) -> Result<&'l LoopRecord, ContinueError> {
    let found = loops.iter().find(|record| record.loop_id == *id);
    found
        .map(|record| &**record)
        .ok_or_else(|| ContinueError::NoSuchLoop(id.clone()))
}

/// The loop that a person means by "again": what came of the last prompt, be it stored as the tip, or
/// refused or cut short by a crash after it.
fn last<'l>(loops: &'l [Arc<LoopRecord>], tip: Option<&LoopId>) -> Option<&'l LoopRecord> {
    let prompted = |record: &&Arc<LoopRecord>| match record.continuation_kind {
        ContinuationKind::Compaction => false,
        ContinuationKind::Initial
        | ContinuationKind::Default
        | ContinuationKind::Rerun
        | ContinuationKind::Branch => true,
    };
    // One that was announced and never began has nothing to do again.
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

/// What was said to the model when the loop began.
fn input_of(record: &LoopRecord) -> Vec<Content> {
    let Some(turn) = record.turns.first() else {
        // It may have been refused before its first turn, or be from before turns were kept.
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

/// Tells one rerun or branch from others of the same parent (UP-16).
fn now() -> String {
    turnery_store::now().to_rfc3339_opts(SecondsFormat::Millis, true)
}
