//! Runs one loop from its first effect to its last.
//!
//! All its event sources are polled in one place, in a fixed order: cancel, grace period and time limit,
//! journal, commands, lane, commit, queued effects (which wait for the client), hook, compaction, permission
//! check, key request, tools, model. Tools and model are read only while few effects are queued, so a slow
//! client slows the model's stream and memory stays bounded, while a cancel is still handled at once.

pub(super) mod beginning;
mod clock;
mod effects;
mod journal;
mod loop_commit;
mod nested_calls;
mod persistence;
mod work;

use self::{
    beginning::loop_spec,
    clock::LoopClock,
    journal::Journal,
    loop_commit::LoopCommit,
    work::{RunningWork, WorkEvent},
};
use super::{
    PromptError, SessionHistory,
    command::{Delivery, Interjection, SessionCommand},
    effect_queue::{EffectQueue, QueuedEffect},
    loop_plan::LoopPlan,
    prompt_guard::PromptGuard,
    prompt_scope::PromptScope,
    running_call::{StreamItem, ToolReport},
    task::SessionTask,
};
use std::{
    collections::VecDeque,
    future::poll_fn,
    mem,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use turnery_engine::{
    Effect, Event, EventKind, Input, Loop, LoopFinish, LoopId, LoopRecord, Outcome, Recorder, Usage,
};
use turnery_models::{ModelEvent, RetryNotice};
use turnery_store::StoreError;
use turnery_tools::Progress;

/// Running loop.
pub(crate) struct LoopRun<'t> {
    task: &'t mut SessionTask,
    guard: &'t mut PromptGuard,
    scope: &'t PromptScope,
    /// Previous history, while the loop continues from elsewhere and is not on the active branch yet.
    previous_history: Option<SessionHistory>,
    machine: Loop,
    /// Effects of the machine that are not processed yet.
    effects: Vec<Effect>,
    /// Inputs that arose while effects were processed.
    inputs: VecDeque<Input>,
    /// Effects that wait for the client.
    queue: EffectQueue,
    work: RunningWork,
    clock: LoopClock,
    recorder: Recorder,
    journal: Journal,
    commit: LoopCommit,
    /// Interjections passed to the loop, kept to its end so that they count as pending.
    interjections: Vec<Interjection>,
    is_cancelled: bool,
}

/// Result of a finished loop.
pub(crate) struct LoopResult {
    pub(crate) outcome: Outcome,
    pub(crate) usage: Usage,
    /// Time of the prompt that counts against its limits.
    pub(crate) elapsed: Duration,
    pub(crate) record: Arc<LoopRecord>,
    /// False if the commit continues in the background.
    pub(crate) is_stored: bool,
}

/// Next event of a running loop.
enum RunEvent {
    Cancelled,
    GraceOver,
    TimeUp,
    JournalDue,
    Command(SessionCommand),
    LaneLost,
    Committed(Result<u64, StoreError>),
    CommitOverdue,
    Effect(QueuedEffect),
    SinkFailed(String),
    Work(WorkEvent),
}

impl<'t> LoopRun<'t> {
    pub(crate) fn begin(
        task: &'t mut SessionTask,
        guard: &'t mut PromptGuard,
        scope: &'t PromptScope,
        mut plan: LoopPlan,
        loop_id: LoopId,
    ) -> Self {
        let base = plan.base_history.take();
        let history = base.as_ref().unwrap_or(&task.conversation.history);
        let spec = loop_spec(task, scope, history, plan, loop_id);
        let conversation = &mut task.conversation;
        let previous_history = base.map(|mut base| {
            base.remember_calls(&conversation.history);
            mem::replace(&mut conversation.history, base)
        });
        conversation.history.mark();
        let recorder = match task.env.settings.keep_streaming {
            true => Recorder::with_streaming_events(),
            false => Recorder::new(),
        };
        let mut effects = Vec::new();
        let machine = scope
            .budget
            .start_loop(spec, turnery_store::now(), &mut effects);
        let loop_id = machine.spec().loop_id.clone();
        let pending = guard.beginning.take();
        let journalled = pending.map_or(0, |pending| pending.confirm(&loop_id, &effects));
        let (store, lane) = (Arc::clone(&task.env.store), guard.lane.clone());
        let mut run = Self {
            task,
            guard,
            scope,
            previous_history,
            machine,
            effects,
            inputs: VecDeque::new(),
            queue: EffectQueue::default(),
            work: RunningWork::default(),
            clock: LoopClock::new(scope.budget.time_left()),
            recorder,
            journal: Journal::new(store, lane, loop_id, journalled),
            commit: LoopCommit::default(),
            interjections: Vec::new(),
            is_cancelled: false,
        };
        run.process_effects();
        run.pass_interjections();
        run
    }

    /// Passes pending interjections to the loop. It returns those that it will not deliver.
    fn pass_interjections(&mut self) {
        while self.scope.takes_interjections
            && !self.machine.is_sealed()
            && let Some(interjection) = self.task.inbox.interjections.pop_front()
        {
            let content = interjection.content.clone();
            let when = interjection.delivery;
            self.interjections.push(interjection);
            self.feed(match when {
                Delivery::Steering => Input::Steer(content),
                Delivery::FollowUp => Input::FollowUp(content),
            });
        }
    }

    /// Drives the loop to its end.
    pub(crate) async fn run_to_end(mut self) -> Result<LoopResult, PromptError> {
        loop {
            let finish = match poll_fn(|cx| self.poll_next(cx)).await {
                RunEvent::Effect(QueuedEffect::Finish(finish)) => finish,
                RunEvent::Command(SessionCommand::OpenLoop(reply)) => {
                    let record = self.recorder.record().cloned();
                    let _ = reply.send(record.map(Arc::new));
                    continue;
                }
                RunEvent::Command(command) => {
                    self.task.handle_command(command);
                    self.pass_interjections();
                    continue;
                }
                event => {
                    self.handle_event(event);
                    continue;
                }
            };
            return self.into_result(finish);
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<RunEvent> {
        if !self.is_cancelled && self.guard.poll_cancelled(cx) {
            self.is_cancelled = true;
            self.limit_commit();
            return Poll::Ready(RunEvent::Cancelled);
        }
        if self.clock.poll_grace(cx).is_ready() {
            return Poll::Ready(RunEvent::GraceOver);
        }
        if self.clock.poll_deadline(cx).is_ready() {
            return Poll::Ready(RunEvent::TimeUp);
        }
        while let Poll::Ready(written) = self.journal.poll_write(cx) {
            // Nothing that waits for the write may begin.
            if let Err(StoreError::LaneLost(_)) = written
                && !faulty!(JournalWithoutLane)
            {
                return Poll::Ready(RunEvent::LaneLost);
            }
            self.journal
                .after_write(written, recorded_events(&self.recorder));
        }
        if self.journal.poll_due(cx).is_ready() {
            return Poll::Ready(RunEvent::JournalDue);
        }
        if let Poll::Ready(Some(command)) = self.task.poll_command(cx) {
            return Poll::Ready(RunEvent::Command(command));
        }
        let store = &self.task.env.store;
        if self.guard.poll_lane_lost(cx, store).is_ready() {
            return Poll::Ready(RunEvent::LaneLost);
        }
        // The store drops the journal of a loop that it commits, so the commit comes last.
        if !self.journal.is_writing()
            && let Poll::Ready(committed) = self.commit.poll_committed(cx)
        {
            return Poll::Ready(RunEvent::Committed(committed));
        }
        if self.commit.poll_overdue(cx).is_ready() {
            return Poll::Ready(RunEvent::CommitOverdue);
        }
        let (output, info) = (&mut self.task.output, &self.task.conversation.info);
        if let Poll::Ready(failure) = output.sinks.poll_failure(cx) {
            return Poll::Ready(RunEvent::SinkFailed(failure));
        }
        if !self.journal.is_writing()
            && let Poll::Ready(effect) = self.queue.poll_next(cx, output, info)
        {
            return Poll::Ready(RunEvent::Effect(effect));
        }
        if let Poll::Ready(failure) = output.sinks.poll_known_failure() {
            return Poll::Ready(RunEvent::SinkFailed(failure));
        }
        self.work
            .poll(cx, self.queue.has_room())
            .map(RunEvent::Work)
    }

    fn handle_event(&mut self, event: RunEvent) {
        match event {
            RunEvent::Cancelled => self.feed(Input::Cancel),
            RunEvent::GraceOver => self.feed(Input::GraceOver),
            RunEvent::TimeUp => self.feed(Input::TimeUp),
            RunEvent::JournalDue => self.journal.write_due(recorded_events(&self.recorder)),
            RunEvent::Command(_) => {}
            RunEvent::LaneLost => self.feed(Input::LaneLost),
            RunEvent::Committed(committed) => self.handle_commit_result(committed),
            RunEvent::CommitOverdue => self.detach_commit(),
            RunEvent::Effect(effect) => self.start_effect(effect),
            RunEvent::SinkFailed(text) => self.feed(Input::Issue(text)),
            RunEvent::Work(event) => self.handle_work(event),
        }
    }

    fn handle_work(&mut self, event: WorkEvent) {
        match event {
            WorkEvent::HookEnded(combined) => {
                for issue in combined.issues {
                    self.feed(Input::Issue(issue));
                }
                self.feed(Input::HookAnswered(combined.verdict));
            }
            WorkEvent::CompactionEnded(compacted) => self.feed(Input::Compacted {
                block: compacted.block.map_err(|error| error.to_string()),
                after: compacted.size_after,
                usage: compacted.usage,
            }),
            WorkEvent::Gate(result) => self.handle_gate(result),
            WorkEvent::KeyWaitEnded(tool_choice) => {
                self.clock.resume();
                self.start_model(tool_choice);
            }
            WorkEvent::Tool(parent, StreamItem::Item(ToolReport::NestedCalls(nested))) => {
                self.start_nested_calls(parent, nested);
            }
            WorkEvent::Tool(call_id, StreamItem::Item(ToolReport::Progress(report))) => {
                self.feed(match report {
                    Progress::Detail(detail) => Input::ToolUpdate { call_id, detail },
                    Progress::Output(text) => Input::ToolOutput { call_id, text },
                    Progress::Plan(entries) => Input::PlanUpdated { call_id, entries },
                    Progress::Message(text) => Input::ToolProgress { call_id, text },
                    Progress::ChildUsage(child) => Input::ChildUsageReported { call_id, child },
                })
            }
            WorkEvent::Tool(call_id, StreamItem::End(envelope)) => {
                self.feed(Input::ToolEnded { call_id, envelope });
            }
            WorkEvent::Model(StreamItem::Item(ModelEvent::Delta(delta))) => {
                self.feed(Input::ModelDelta(delta))
            }
            WorkEvent::Model(StreamItem::Item(ModelEvent::Retry(RetryNotice {
                attempt,
                error,
                wait,
                takeover,
            }))) => {
                self.feed(Input::ModelRetried {
                    attempt,
                    error,
                    wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                });
                if let Some(name) = takeover {
                    self.take_over(&name);
                }
            }
            WorkEvent::Model(StreamItem::Item(ModelEvent::Silence(silent))) => {
                self.feed(Input::ModelSilent {
                    silent_ms: u64::try_from(silent.length.as_millis()).unwrap_or(u64::MAX),
                    is_connected: silent.is_connected,
                })
            }
            WorkEvent::Model(StreamItem::End(Ok(mut response))) => {
                self.task
                    .conversation
                    .history
                    .distinguish_calls(&mut response);
                let toolbox = self.toolbox();
                let announce = |call| toolbox.announce(call, &self.task.env.workspace);
                let calls = response.calls().map(announce).collect();
                let value = self.scope.finish_rule.value_in(&response);
                self.feed(Input::ModelAnswered {
                    response,
                    calls,
                    value,
                });
            }
            WorkEvent::Model(StreamItem::End(Err(error))) => self.feed(Input::ModelFailed(error)),
        }
    }

    fn feed(&mut self, input: Input) {
        self.feed_one(input);
        while let Some(input) = self.inputs.pop_front() {
            self.feed_one(input);
        }
    }

    fn feed_one(&mut self, input: Input) {
        let (now, out) = (turnery_store::now(), &mut self.effects);
        match &input {
            // A sub-agent has charged the budget itself.
            Input::ChildUsageReported { call_id, .. } if self.work.opens_sessions(call_id) => {
                self.machine.handle_input(now, input, out);
            }
            // These inputs spend nothing.
            Input::ModelDelta(_) | Input::PriceChanged(_) => {
                self.machine.handle_input(now, input, out)
            }
            _ => {
                let budget = &self.scope.budget;
                budget.feed_loop(&mut self.machine, now, input, out);
            }
        }
        self.process_effects();
    }

    /// Folds events into the record, and carries out or queues all effects.
    fn process_effects(&mut self) {
        let mut effects = mem::take(&mut self.effects);
        let mut matters = false;
        for effect in effects.drain(..) {
            matters |= must_be_journalled(&effect);
            if let Effect::Emit(event) = &effect {
                self.record_event(event);
            }
            self.dispatch_effect(effect);
        }
        // After a commit nothing is left to journal: the commit contains everything.
        let events = recorded_events(&self.recorder);
        if matters {
            self.journal.write_now(events);
        } else {
            self.journal.schedule(events);
        }
        self.effects = effects;
    }

    fn into_result(mut self, finish: LoopFinish) -> Result<LoopResult, PromptError> {
        match (finish, self.commit.record.take()) {
            (LoopFinish::Committed { outcome, usage }, Some(record)) => {
                // Filters may have dropped or changed interjections that are not found among the messages.
                let interjections = self.interjections.iter_mut();
                interjections.for_each(Interjection::mark_delivered);
                if self.commit.is_overdue {
                    self.rewind_history();
                }
                Ok(LoopResult {
                    outcome,
                    usage,
                    elapsed: self.elapsed(),
                    record,
                    is_stored: !self.commit.is_overdue,
                })
            }
            (LoopFinish::Committed { .. }, None) => Err(Self::missing_record_error().into()),
            (LoopFinish::CommitFailed(error), _) => {
                if !faulty!(KeepLostMessages) {
                    self.rewind_history();
                }
                Err(PromptError::Lost(error))
            }
        }
    }
}

/// Returns the events recorded so far; empty before the first event.
fn recorded_events(recorder: &Recorder) -> &[Event] {
    recorder.record().map_or(&[], |record| &record.events)
}

/// Returns true if the events so far must survive a crash before this effect: a tool or model is about to
/// run, a call has ended, or the user is asked.
fn must_be_journalled(effect: &Effect) -> bool {
    match effect {
        Effect::RunTool(_) | Effect::CallModel { .. } | Effect::Compact { .. } => true,
        Effect::Emit(event) => matches!(
            event.kind,
            EventKind::ToolExecutionEnd { .. } | EventKind::PermissionRequested { .. }
        ),
        Effect::Publish(_)
        | Effect::Gate(_)
        | Effect::Finish(_)
        | Effect::RunHook(_)
        | Effect::CancelHook
        | Effect::StopCompaction
        | Effect::ReturnUndelivered(_)
        | Effect::StopModel
        | Effect::CancelGate(_)
        | Effect::ReturnResults { .. }
        | Effect::StopTool(_)
        | Effect::AbortTool(_)
        | Effect::StartGrace
        | Effect::Commit(_) => false,
    }
}
