//! Loop: the state machine of one engine execution.
//!
//! Fed with [`Input`]s, it answers with [`Effect`]s, to be carried out in the order given.
//! It has no way to fail: an input that does not fit the state is ignored, so a late word from
//! an aborted tool or a dropped model stream changes nothing (R5).
//!
//! A loop goes from stage to stage: the model answers, its calls are made one after the other, the
//! model answers again, and so on, until there is nothing more to do or something halts it; then it
//! commits. Every way out of a turn passes through `close_turn`, and every way out of the loop
//! through `conclude`, so no bracket stays open (R1).

#[cfg(test)]
mod explorer;
#[macro_use]
mod fault;

mod calls;
mod closing;
mod draft;
mod effect;
mod ending;
mod halt;
mod input;
mod limits;
mod mint;
mod spec;
mod turn;

pub use effect::{CommitFault, Effect, Finish};
pub use input::{Announced, Input};
pub use spec::{Context, Limits, LoopSpec, Price, QueueMode};

use crate::{Event, EventKind, Timestamp, Usage};
use calls::Batch;
use draft::Draft;
use halt::Halt;
use mint::Mint;
use std::mem;

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
    usage: Usage,
    halt: Option<Halt>,
    stage: Stage,
    #[cfg(test)]
    fault: Option<fault::Fault>,
}

/// What a loop waits for.
#[derive(Clone, Debug)]
enum Stage {
    /// The model's answer.
    Modelling(Draft),
    /// The verdict on a call, or its end.
    Calling(Batch),
    /// The store's answer. The outcome is sealed: it is in this `LoopEnd`.
    Committing(Box<Event>),
    /// Nothing.
    Over,
}

impl Loop {
    /// Begin. The first effects go to `out`.
    pub fn start(mut spec: LoopSpec, now: Timestamp, out: &mut Vec<Effect>) -> Self {
        let input = mem::take(&mut spec.input);
        let mut this = Self {
            mint: Mint::new(spec.session_id.clone(), spec.loop_id.clone()),
            counts_from: now,
            asked_at: None,
            turns: 0,
            usage: Usage::default(),
            halt: None,
            stage: Stage::Over,
            spec,
            #[cfg(test)]
            fault: None,
        };
        let kind = EventKind::LoopStart {
            agent_id: this.spec.agent_id.clone(),
            prompt_id: this.spec.prompt_id.clone(),
            parent_loop_id: this.spec.parent_loop_id.clone(),
            continuation_kind: this.spec.continuation_kind,
            config: Some(Box::new(this.spec.config.clone())),
            tag: this.spec.tag.clone(),
            metadata: this.spec.metadata.clone(),
            frame_id: this.spec.frame_id.clone(),
            frame: this.spec.frame.clone().map(Box::new),
        };
        this.mint.emit(now, kind, out);
        let trigger = this.spec.trigger;
        this.next_turn(now, trigger, input, out);
        this
    }

    /// Take in one input at the time `now`; effects are appended to `out`.
    pub fn on(&mut self, now: Timestamp, input: Input, out: &mut Vec<Effect>) {
        match input {
            Input::Delta(delta) => self.delta(now, delta, out),
            Input::Answered { response, calls } => self.answered(now, response, calls, out),
            Input::ModelFailed(fault) => self.model_failed(now, fault, out),
            Input::Asking { call_id, detail } => self.asking(now, call_id, detail, out),
            Input::Verdict { call_id, verdict } => self.verdict(now, &call_id, verdict, out),
            Input::Shows { call_id, detail } => self.shows(now, call_id, detail, out),
            Input::Printed { call_id, text } => self.printed(now, call_id, text, out),
            Input::Planned { call_id, entries } => self.planned(now, &call_id, entries, out),
            Input::Ended { call_id, envelope } => self.ended(now, &call_id, envelope, out),
            Input::Progressed { call_id, text } => self.progressed(now, call_id, text, out),
            Input::ChildSpent { call_id, child } => self.child_spent(now, call_id, child, out),
            Input::Retried {
                attempt,
                fault,
                wait_ms,
            } => self.retried(now, attempt, fault, wait_ms, out),
            Input::Noticed(text) => self.noticed(now, text, out),
            Input::Steer(_) | Input::FollowUp(_) | Input::Hooked(_) | Input::Compacted { .. } => {}
            Input::Cancel => self.halt(now, Halt::Cancelled, out),
            Input::GraceOver => self.grace_over(now, out),
            Input::TimeUp => self.halt(now, Halt::TimeUp, out),
            Input::Committed => self.committed(out),
            Input::CommitFailed(fault) => self.commit_failed(fault, out),
            Input::LaneLost => self.halt(now, Halt::LaneLost, out),
        }
    }

    /// What the loop was started with; its input has moved into the first message.
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
            Stage::Modelling(_) | Stage::Calling(_) => false,
            Stage::Committing(_) | Stage::Over => true,
        }
    }

    /// True once `Finish` has been given.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match self.stage {
            Stage::Modelling(_) | Stage::Calling(_) | Stage::Committing(_) => false,
            Stage::Over => true,
        }
    }

    /// The draft, if the model is answering. The caller sets the next stage.
    fn take_draft(&mut self) -> Option<Draft> {
        match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Modelling(draft) => Some(draft),
            other => {
                self.stage = other;
                None
            }
        }
    }
}
