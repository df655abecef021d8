//! Loop: the state machine of one engine execution.
//!
//! Fed with [`Input`]s, it answers with [`Effect`]s, to be carried out in the order given.
//! It has no way to fail: an input that does not fit the state is ignored, so a late word from
//! an aborted tool or a dropped model stream changes nothing (R5).
//!
//! A loop goes from stage to stage: the model answers, its calls are made, the model answers again,
//! and so on, until there is nothing more to do or something halts it; then it commits. Between
//! stages hooks may be asked. Every way out of a turn passes through `close_turn`, which says what
//! comes `Next`, and every way out of the loop through `seal`: no bracket stays open (R1), and what
//! people said to the loop is heard or given back.

#[cfg(test)]
mod explorer;
#[macro_use]
mod fault;

mod batch;
mod calls;
mod closing;
mod compacting;
mod control;
mod draft;
mod effect;
mod ending;
mod halt;
mod hooks;
mod input;
mod limits;
mod mint;
mod opening;
mod spec;
mod steering;
mod turn;

pub use effect::{CommitFault, Effect, Finish};
pub use input::{Announced, Input};
pub use spec::{Context, Limits, LoopSpec, Price, QueueMode, Spending};

#[cfg(test)]
pub(crate) use batch::visits as batch_visits;

use crate::{ChildUsage, ContinuationKind, Detail, Event, EventKind, Timestamp, Usage};
use batch::Batch;
use compacting::{Gauge, Reason};
use draft::Draft;
use halt::Halt;
use hooks::Question;
use mint::Mint;
use std::mem;
use steering::Queues;

/// One engine execution.
#[derive(Clone, Debug)]
pub struct Loop {
    spec: LoopSpec,
    /// Where the time limit counts from: the start, moved on by the time spent waiting for a person.
    counts_from: Timestamp,
    /// Since when a person has been asked.
    asked_at: Option<Timestamp>,
    mint: Mint,
    turns: u32,
    /// Calls of the model in this turn that failed.
    attempts: u32,
    /// The last message was a tool's result.
    after_result: bool,
    usage: Usage,
    /// What its own turns, answers and summaries count against the limits; the time is in `counts_from`.
    own: Spending,
    /// What the rest of the prompt has spent.
    elsewhere: Spending,
    /// The last that was heard of what each child session has spent, by source and model (I6).
    children: Vec<ChildUsage>,
    gauge: Gauge,
    queues: Queues,
    halt: Option<Halt>,
    /// The grace after a halt has begun.
    grace: bool,
    /// The grace is over: nothing is waited for any more.
    killed: bool,
    /// The limit that was reached, once the model may reply to it for the last time (C-4).
    last_reply: Option<Detail>,
    stage: Stage,
    #[cfg(test)]
    fault: Option<fault::Fault>,
}

/// What a loop waits for.
#[derive(Clone, Debug)]
enum Stage {
    /// A hook's answer. Hooks around a call are asked while others run: those are in `Calling`.
    Asking(Box<Question>),
    /// The summary of history.
    Compacting(Box<Reason>),
    /// The model's answer.
    Modelling(Draft),
    /// The verdict on a call, its end, or a hook's answer about it.
    Calling(Batch),
    /// The store's answer. The outcome is sealed: it is in this `LoopEnd`.
    Committing(Box<Event>),
    /// Nothing.
    Over,
}

impl Loop {
    /// Begin. The first effects go to `out`.
    pub fn start(spec: LoopSpec, now: Timestamp, out: &mut Vec<Effect>) -> Self {
        let mut this = Self {
            mint: Mint::new(spec.session_id.clone(), spec.loop_id.clone(), now),
            counts_from: now,
            asked_at: None,
            turns: 0,
            attempts: 0,
            after_result: false,
            usage: Usage::default(),
            own: Spending::default(),
            elsewhere: spec.elsewhere,
            children: Vec::new(),
            gauge: Gauge::new(&spec.context),
            queues: Queues::default(),
            halt: None,
            grace: false,
            killed: false,
            last_reply: None,
            stage: Stage::Over,
            spec,
            #[cfg(test)]
            fault: None,
        };
        mem::swap(&mut this.mint.out, out);
        if !this.spec.group.is_empty() {
            this.mint.emit(EventKind::ParallelStart {
                agent_id: this.spec.agent_id.clone(),
                loop_ids: this.spec.group.clone(),
            });
        }
        this.mint.emit(EventKind::LoopStart {
            agent_id: this.spec.agent_id.clone(),
            prompt_id: this.spec.prompt_id.clone(),
            parent_loop_id: this.spec.parent_loop_id.clone(),
            continuation_kind: this.spec.continuation_kind,
            config: Some(Box::new(this.spec.config.clone())),
            tag: this.spec.tag.clone(),
            metadata: this.spec.metadata.clone(),
            frame_id: this.spec.frame_id.clone(),
            frame: this.spec.frame.clone().map(Box::new),
        });
        match this.spec.continuation_kind {
            ContinuationKind::Compaction => this.compact(Reason::Standalone),
            ContinuationKind::Initial
            | ContinuationKind::Default
            | ContinuationKind::Rerun
            | ContinuationKind::Branch => this.take_prompt(),
        }
        mem::swap(&mut this.mint.out, out);
        this
    }

    /// Take in one input at the time `now`; effects are appended to `out`.
    pub fn on(&mut self, now: Timestamp, input: Input, out: &mut Vec<Effect>) {
        self.mint.now = now;
        mem::swap(&mut self.mint.out, out);
        match input {
            Input::Delta(delta) => self.delta(delta),
            Input::Answered { response, calls } => self.answered(response, calls),
            Input::ModelFailed(fault) => self.model_failed(fault),
            Input::Retried {
                attempt,
                fault,
                wait_ms,
            } => self.retried(attempt, fault, wait_ms),
            Input::Silent {
                silent_ms,
                is_connected,
            } => self.silent(silent_ms, is_connected),
            Input::Steer(words) => self.steer(words),
            Input::FollowUp(words) => self.follow_up(words),
            Input::Hooked(verdict) => self.hooked(verdict),
            Input::Compacted {
                block,
                after,
                usage,
            } => self.compacted(block, after, usage),
            Input::Asking { call_id, detail } => self.asking(call_id, detail),
            Input::Verdict { call_id, verdict } => self.verdict(&call_id, verdict),
            Input::Shows { call_id, detail } => self.said_by_call(call_id, |call_id| {
                EventKind::ToolExecutionUpdate { call_id, detail }
            }),
            Input::Printed { call_id, text } => self.said_by_call(call_id, |call_id| {
                EventKind::ToolExecutionOutput { call_id, text }
            }),
            Input::Progressed { call_id, text } => {
                self.said_by_call(call_id, |call_id| EventKind::ToolProgress { call_id, text });
            }
            Input::ChildSpent { .. } if faulty!(self, DropChildUsage) => {}
            Input::ChildSpent { call_id, child } => self.child_spent(call_id, child),
            Input::Planned { call_id, entries } => self.planned(&call_id, entries),
            Input::Ended { call_id, envelope } => self.ended(&call_id, envelope),
            Input::OtherSpending(_) if faulty!(self, IgnoreOtherSpending) => {}
            Input::OtherSpending(spending) => self.elsewhere = spending,
            Input::Price(price) => self.spec.price = price,
            Input::Noticed(text) => self.noticed(text),
            Input::Cancel => self.halt(Halt::Cancelled),
            Input::GraceOver => self.grace_over(),
            Input::TimeUp => self.halt(Halt::TimeUp),
            Input::Committed => self.committed(),
            Input::CommitFailed(fault) => self.commit_failed(fault),
            Input::LaneLost => self.halt(Halt::LaneLost),
        }
        mem::swap(&mut self.mint.out, out);
    }

    /// What the loop was started with; its input has moved into the first message, and its price is that of
    /// the model that is called now.
    #[must_use]
    pub fn spec(&self) -> &LoopSpec {
        &self.spec
    }

    /// Of all turns so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The index of the turn that runs, if one does.
    #[must_use]
    pub fn turn_index(&self) -> Option<u32> {
        self.mint.turn_index
    }

    /// True once `Commit` has been given: what comes now no longer changes the outcome.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        match self.stage {
            Stage::Asking(_) | Stage::Compacting(_) | Stage::Modelling(_) | Stage::Calling(_) => {
                false
            }
            Stage::Committing(_) | Stage::Over => true,
        }
    }

    /// True once `Finish` has been given.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match self.stage {
            Stage::Asking(_)
            | Stage::Compacting(_)
            | Stage::Modelling(_)
            | Stage::Calling(_)
            | Stage::Committing(_) => false,
            Stage::Over => true,
        }
    }

    fn give(&mut self, effect: Effect) {
        self.mint.out.push(effect);
    }

    /// Tell a person, while there is somewhere to tell it.
    fn noticed(&mut self, text: String) {
        if !self.is_sealed() {
            self.mint.emit(EventKind::Issue { text });
        }
    }
}
