//! State machine of one engine execution.
//!
//! A [`Loop`] consumes [`Input`]s and produces [`Effect`]s, which the host carries out in the given order. It
//! cannot fail: inputs that do not fit the current stage are ignored, so a late report from an aborted tool
//! or a dropped model stream changes nothing (R5).
//!
//! A loop alternates between model calls and tool calls until the model is done or the loop is halted; then
//! it commits. Hooks may run between stages. Every turn ends in `finish_turn`, which takes the `NextStep`, and
//! every loop ends in `seal`, so that every start event gets its end event (R1) and every queued user message
//! is either delivered or returned.

mod call_batch;
mod call_end;
mod cancellation;
mod commit;
mod compaction;
mod context_gauge;
mod effect;
mod event_emitter;
mod halt;
mod hooks;
mod input;
mod limits;
mod nested_calls;
mod next_step;
mod pending_turn;
mod response_draft;
mod spec;
mod stage;
mod steering;
#[cfg(test)]
mod tests;
mod tool_calls;
mod tool_control;
mod turn;

pub use effect::{CommitError, Effect, LoopFinish};
pub use input::{CallAnnouncement, Input, TextValue};
pub use spec::{
    ContextBudget, Limits, LoopSpec, Price, PriceTier, QueueMode, Spending, Termination,
};

use crate::{ChildUsage, ContinuationKind, EventKind, ReachedLimit, Timestamp, Usage};
use call_batch::CallBatch;
use context_gauge::ContextGauge;
use event_emitter::EventEmitter;
use halt::Halt;
use response_draft::ResponseDraft;
use stage::{CompactionReason, Stage};
use std::mem;
use steering::InputQueues;

/// One engine execution.
#[derive(Clone, Debug)]
pub struct Loop {
    spec: LoopSpec,
    /// Start of the time limit: the start of the loop, moved forward by the time spent waiting for the user.
    time_base: Timestamp,
    /// Start of the current permission request.
    permission_asked_at: Option<Timestamp>,
    emitter: EventEmitter,
    turn_count: u32,
    /// Number of failed model calls in this turn.
    failed_attempts: u32,
    /// True if the last message is a tool result.
    is_after_result: bool,
    usage: Usage,
    /// Spending of this loop (turns, responses, summaries) against the limits; the time is in `time_base`.
    own_spending: Spending,
    /// Spending of the rest of the prompt.
    other_spending: Spending,
    /// Latest usage report of each child session, by source and model (I6).
    children_usage: Vec<ChildUsage>,
    gauge: ContextGauge,
    input_queues: InputQueues,
    halt: Option<Halt>,
    /// True once the grace period after a halt has started.
    grace_started: bool,
    /// True once the grace period is over: the loop no longer waits for anything.
    is_grace_over: bool,
    /// True if the model was reminded in this turn that it must finish (UP-33).
    was_reminded: bool,
    /// Number of reminders since the last response with calls.
    reminder_count: u32,
    /// Why the value in the last response cannot end the loop.
    value_rejection: Option<String>,
    /// Limit that was reached, while the model may give its last reply (C-4).
    last_reply_limit: Option<ReachedLimit>,
    stage: Stage,
}

impl Loop {
    /// Starts a loop and appends its first effects to `out`.
    pub fn start(spec: LoopSpec, now: Timestamp, out: &mut Vec<Effect>) -> Self {
        let mut this = Self {
            emitter: EventEmitter::new(spec.session_id.clone(), spec.loop_id.clone(), now),
            time_base: now,
            permission_asked_at: None,
            turn_count: 0,
            failed_attempts: 0,
            is_after_result: false,
            usage: Usage::default(),
            own_spending: Spending::default(),
            other_spending: spec.other_spending,
            children_usage: Vec::new(),
            gauge: ContextGauge::new(&spec.context),
            input_queues: InputQueues::default(),
            halt: None,
            grace_started: false,
            is_grace_over: false,
            was_reminded: false,
            reminder_count: 0,
            value_rejection: None,
            last_reply_limit: None,
            stage: Stage::Finished,
            spec,
        };
        mem::swap(&mut this.emitter.effects, out);
        if !this.spec.parallel_group.is_empty() {
            this.emitter.emit(EventKind::ParallelStart {
                agent_id: this.spec.agent_id.clone(),
                loop_ids: this.spec.parallel_group.clone(),
            });
        }
        this.emitter.emit(EventKind::LoopStart {
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
            ContinuationKind::Compaction => this.request_compaction(CompactionReason::Standalone),
            ContinuationKind::Initial
            | ContinuationKind::Default
            | ContinuationKind::Rerun
            | ContinuationKind::Branch => this.start_prompt(),
        }
        mem::swap(&mut this.emitter.effects, out);
        this
    }

    /// Processes one input received at `now`, and appends the resulting effects to `out`.
    pub fn handle_input(&mut self, now: Timestamp, input: Input, out: &mut Vec<Effect>) {
        self.emitter.now = now;
        mem::swap(&mut self.emitter.effects, out);
        match input {
            Input::ModelDelta(delta) => self.handle_delta(delta),
            Input::ModelAnswered {
                response,
                calls,
                value,
            } => self.handle_response(response, calls, value),
            Input::ModelFailed(error) => self.handle_model_error(error),
            Input::ModelRetried {
                attempt,
                error,
                wait_ms,
            } => self.handle_retry(attempt, error, wait_ms),
            Input::ModelSilent {
                silent_ms,
                is_connected,
            } => self.handle_silence(silent_ms, is_connected),
            Input::Steer(content) => self.queue_steering(content),
            Input::FollowUp(content) => self.queue_follow_up(content),
            Input::HookAnswered(verdict) => self.handle_hook_verdict(verdict),
            Input::Compacted {
                block,
                after,
                usage,
            } => self.handle_compaction(block, after, usage),
            Input::PermissionRequested { call_id, detail } => {
                self.handle_permission_request(call_id, detail)
            }
            Input::Verdict { call_id, verdict } => self.handle_verdict(&call_id, verdict),
            Input::ToolUpdate { call_id, detail } => self.emit_from_call(call_id, |call_id| {
                EventKind::ToolExecutionUpdate { call_id, detail }
            }),
            Input::ToolOutput { call_id, text } => self.emit_from_call(call_id, |call_id| {
                EventKind::ToolExecutionOutput { call_id, text }
            }),
            Input::ToolProgress { call_id, text } => {
                self.emit_from_call(call_id, |call_id| EventKind::ToolProgress { call_id, text });
            }
            Input::ChildUsageReported { .. } if faulty!(DropChildUsage) => {}
            Input::ChildUsageReported { call_id, child } => self.handle_child_usage(call_id, child),
            Input::NestedCalls {
                parent,
                calls,
                announced,
            } => self.start_nested_calls(parent, calls, announced),
            Input::PlanUpdated { call_id, entries } => {
                self.emit_from_call(call_id, |_| EventKind::PlanUpdated { entries });
            }
            Input::ToolEnded { call_id, envelope } => self.handle_tool_end(&call_id, envelope),
            Input::OtherSpending(_) if faulty!(IgnoreOtherSpending) => {}
            Input::OtherSpending(spending) => self.other_spending = spending,
            Input::PriceChanged(price) => self.spec.price = price,
            Input::Issue(text) => self.handle_issue(text),
            Input::Cancel => self.halt(Halt::Cancelled),
            Input::GraceOver => self.handle_grace_over(),
            Input::TimeUp => self.halt(Halt::TimeUp),
            Input::Committed => self.handle_committed(),
            Input::CommitFailed(error) => self.handle_commit_error(error),
            Input::LaneLost => self.halt(Halt::LaneLost),
        }
        mem::swap(&mut self.emitter.effects, out);
    }

    /// Returns the spec of the loop. Its input has moved into the first message, and its price is that of the
    /// current model.
    #[must_use]
    pub fn spec(&self) -> &LoopSpec {
        &self.spec
    }

    /// Returns the usage of all turns so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns the index of the running turn, if there is one.
    #[must_use]
    pub fn turn_index(&self) -> Option<u32> {
        self.emitter.turn_index
    }

    /// Returns true once the outcome cannot change any more: `Commit` was emitted, or the loop is over
    /// without a commit.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        matches!(self.stage, Stage::Committing(_) | Stage::Finished)
    }

    /// Returns true once `Finish` was emitted.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Finished)
    }

    fn push_effect(&mut self, effect: Effect) {
        self.emitter.effects.push(effect);
    }

    /// Emits a notice for the user, unless the outcome is sealed.
    fn handle_issue(&mut self, text: String) {
        if !self.is_sealed() {
            self.emitter.emit(EventKind::Issue { text });
        }
    }
}
