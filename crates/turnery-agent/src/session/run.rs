//! Runs one loop from its first effect to its last.
//!
//! All its event sources are polled in one place, in a fixed order: cancel, grace and limits, commands, the
//! lane, the store, the outbox, hooks, verdicts, tool output, model output. The last two are read only while
//! few effects are queued, so a slow client slows the model's stream and memory stays bounded, while a cancel
//! is still handled at once.

pub(super) mod beginning;
mod effects;
mod persistence;

use self::beginning::specify;
use super::{
    SessionHistory,
    command::{Delivery, Interjection, SessionCommand},
    effect_queue::{self, EffectQueue, EffectTiming, ImmediateEffect, QueuedEffect},
    gate::{CallGate, GateResult},
    loop_plan::LoopPlan,
    prompt_guard::PromptGuard,
    prompt_run::PromptScope,
    running_call::{RunningModel, RunningTool, StreamItem},
    task::SessionTask,
};
use crate::{CompactionOutput, PromptError, hooks, sink::SessionOutput};
use futures_util::future::BoxFuture;
use std::{
    collections::{HashMap, VecDeque},
    future::poll_fn,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep_until};
use turnery_engine::{
    CallId, Effect, Event, EventKind, Input, Loop, LoopFinish, LoopId, LoopRecord, ModelError,
    Outcome, Recorder, Response, ToolEnvelope, Usage,
};
use turnery_models::{ModelEvent, RetryNotice};
use turnery_store::StoreError;
use turnery_tools::{LineLimits, Progress};

/// Maximum delay before events are journalled. A loop that commits earlier is never journalled.
const JOURNAL_DELAY: Duration = Duration::from_millis(20);

/// Running loop.
pub(crate) struct LoopRun<'t> {
    task: &'t mut SessionTask,
    watch: &'t mut PromptGuard,
    scope: &'t PromptScope,
    /// Previous history, while the loop continues from elsewhere and is not on the active branch yet.
    aside: Option<SessionHistory>,
    machine: Loop,
    recorder: Recorder,
    /// Record that was passed to the store.
    record: Option<Arc<LoopRecord>>,
    steps: EffectQueue,
    out: Vec<Effect>,
    inputs: VecDeque<Input>,
    /// Number of the record's events that are journalled or need not be.
    journalled: usize,
    /// Deadline for journalling the rest.
    journal_due: Option<Pin<Box<Sleep>>>,
    /// Journal write in progress; no queued effect is taken meanwhile.
    journalling: Option<BoxFuture<'static, Result<(), StoreError>>>,
    /// Events to journal after that.
    unwritten: Vec<Event>,
    cancel_heard: bool,
    /// Resolves when the cancelled prompt stops waiting for its commit.
    patience: Option<BoxFuture<'static, ()>>,
    /// True once the commit continues in the background.
    is_overdue: bool,
    grace: Option<Pin<Box<Sleep>>>,
    deadline: Option<Pin<Box<Sleep>>>,
    /// Start of a pending request to the user; that time does not count against the limits.
    asked_since: Option<Instant>,
    committing: Option<BoxFuture<'static, Result<u64, StoreError>>>,
    hook: Option<BoxFuture<'static, hooks::CombinedVerdict>>,
    compacting: Option<BoxFuture<'static, CompactionOutput>>,
    gate: Option<CallGate>,
    /// Limits of judged command lines that have not run yet.
    line_limits: HashMap<CallId, LineLimits>,
    tools: Vec<RunningTool>,
    /// Pending request for the API key that the next call needs.
    keying: Option<KeyWait>,
    model: Option<RunningModel>,
    /// Interjections passed to the loop, kept to its end so that they count as pending.
    told: Vec<Interjection>,
    title_is_new: bool,
}

/// Model call that waits for its API key.
struct KeyWait {
    /// True if the call offers tools.
    tools: bool,
    settled: BoxFuture<'static, ()>,
}

/// Result of a loop that was committed.
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
    Mail(SessionCommand),
    LaneLost,
    Committed(Result<u64, StoreError>),
    CommitOverdue,
    Step(QueuedEffect),
    /// A sink failed.
    Broken(String),
    Hooked(hooks::CombinedVerdict),
    Compacted(CompactionOutput),
    Found(GateResult),
    /// The wait for a key is over; the call continues with or without tools.
    KeyWaitDone {
        tools: bool,
    },
    Tool(CallId, StreamItem<Progress, ToolEnvelope>),
    Model(StreamItem<ModelEvent, Result<Response, ModelError>>),
}

impl<'t> LoopRun<'t> {
    /// Begins a loop.
    pub(crate) fn begin(
        task: &'t mut SessionTask,
        watch: &'t mut PromptGuard,
        scope: &'t PromptScope,
        mut plan: LoopPlan,
        loop_id: LoopId,
    ) -> Self {
        let base = plan.base.take();
        let history = base.as_ref().unwrap_or(&task.history);
        let spec = specify(task, scope, history, plan, loop_id);
        let aside = base.map(|mut base| {
            base.remember_calls(&task.history);
            mem::replace(&mut task.history, base)
        });
        task.history.mark();
        let recorder = match task.settings.keep_streaming {
            true => Recorder::with_streaming_events(),
            false => Recorder::new(),
        };
        let mut out = Vec::new();
        let machine = scope.budget.start(spec, turnery_store::now(), &mut out);
        let pending = watch.beginning.take();
        let loop_id = &machine.spec().loop_id;
        let journalled = pending.map_or(0, |pending| pending.confirm(loop_id, &out));
        let mut run = Self {
            deadline: Instant::now()
                .checked_add(scope.budget.time_left())
                .map(|at| Box::pin(sleep_until(at))),
            task,
            watch,
            scope,
            aside,
            machine,
            recorder,
            record: None,
            steps: EffectQueue::default(),
            out,
            inputs: VecDeque::new(),
            journalled,
            journal_due: None,
            journalling: None,
            unwritten: Vec::new(),
            cancel_heard: false,
            patience: None,
            is_overdue: false,
            grace: None,
            asked_since: None,
            committing: None,
            hook: None,
            compacting: None,
            gate: None,
            line_limits: HashMap::new(),
            tools: Vec::new(),
            keying: None,
            model: None,
            told: Vec::new(),
            title_is_new: false,
        };
        run.process_effects();
        run.hear();
        run
    }

    /// Passes pending interjections to the loop. It returns those that it will not deliver.
    fn hear(&mut self) {
        while !self.machine.is_sealed()
            && let Some(word) = self.task.words.pop_front()
        {
            let content = word.content.clone();
            let when = word.when;
            self.told.push(word);
            self.feed(match when {
                Delivery::Soon => Input::Steer(content),
                Delivery::AtTheEnd => Input::FollowUp(content),
            });
        }
    }

    /// Drives the loop to its end.
    pub(crate) async fn finish(mut self) -> Result<LoopResult, PromptError> {
        loop {
            let finish = match poll_fn(|cx| self.poll_next(cx)).await {
                RunEvent::Step(QueuedEffect::Finish(finish)) => finish,
                RunEvent::Mail(mail) => {
                    self.task.mail(mail);
                    self.hear();
                    continue;
                }
                happened => {
                    self.take(happened);
                    continue;
                }
            };
            return self.into_result(finish);
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<RunEvent> {
        if !self.cancel_heard && self.watch.poll_cancelled(cx) {
            self.cancel_heard = true;
            self.limit_commit();
            return Poll::Ready(RunEvent::Cancelled);
        }
        if let Some(grace) = &mut self.grace
            && grace.as_mut().poll(cx).is_ready()
        {
            self.grace = None;
            return Poll::Ready(RunEvent::GraceOver);
        }
        if self.asked_since.is_none()
            && let Some(deadline) = &mut self.deadline
            && deadline.as_mut().poll(cx).is_ready()
        {
            self.deadline = None;
            return Poll::Ready(RunEvent::TimeUp);
        }
        while let Some(journalling) = &mut self.journalling
            && let Poll::Ready(written) = journalling.as_mut().poll(cx)
        {
            self.journalling = None;
            self.after_journalling(written);
        }
        if let Some(due) = &mut self.journal_due
            && due.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(RunEvent::JournalDue);
        }
        if let Poll::Ready(Some(mail)) = self.task.poll_command(cx) {
            return Poll::Ready(RunEvent::Mail(mail));
        }
        if self.watch.poll_lane_lost(cx, &self.task.store).is_ready() {
            return Poll::Ready(RunEvent::LaneLost);
        }
        // The store drops the journal of a loop that it commits, so the commit comes last.
        if self.journalling.is_none()
            && let Some(committing) = &mut self.committing
            && let Poll::Ready(committed) = committing.as_mut().poll(cx)
        {
            self.committing = None;
            self.patience = None;
            return Poll::Ready(RunEvent::Committed(committed));
        }
        if let Some(patience) = &mut self.patience
            && patience.as_mut().poll(cx).is_ready()
        {
            self.patience = None;
            return Poll::Ready(RunEvent::CommitOverdue);
        }
        let mut shown = SessionOutput {
            outbox: &mut *self.task.ports.outbox,
            tap: &mut self.task.tap,
            observing: &mut self.task.observing,
        };
        if let Poll::Ready(broken) = shown.tap.poll_failure(cx) {
            return Poll::Ready(RunEvent::Broken(broken));
        }
        if self.journalling.is_none()
            && let Poll::Ready(step) = self.steps.poll_next(cx, &mut shown, &self.task.info)
        {
            return Poll::Ready(RunEvent::Step(step));
        }
        if let Poll::Ready(broken) = self.task.tap.poll_known_failure() {
            return Poll::Ready(RunEvent::Broken(broken));
        }
        self.poll_work(cx)
    }

    fn poll_work(&mut self, cx: &mut Context<'_>) -> Poll<RunEvent> {
        if let Some(hook) = &mut self.hook
            && let Poll::Ready(said) = hook.as_mut().poll(cx)
        {
            self.hook = None;
            return Poll::Ready(RunEvent::Hooked(said));
        }
        if let Some(compacting) = &mut self.compacting
            && let Poll::Ready(compacted) = compacting.as_mut().poll(cx)
        {
            self.compacting = None;
            return Poll::Ready(RunEvent::Compacted(compacted));
        }
        if let Some(gate) = &mut self.gate
            && let Poll::Ready(found) = gate.poll(cx)
        {
            self.gate = None;
            return Poll::Ready(RunEvent::Found(found));
        }
        if let Some(keying) = &mut self.keying
            && keying.settled.as_mut().poll(cx).is_ready()
        {
            let tools = keying.tools;
            self.keying = None;
            return Poll::Ready(RunEvent::KeyWaitDone { tools });
        }
        let few = self.steps.few();
        for place in 0..self.tools.len() {
            if let Poll::Ready(said) = self.tools[place].poll(cx, few) {
                // Move the tool to the end: a chatty one must not starve the others.
                let tool = self.tools.remove(place);
                let call_id = tool.call_id.clone();
                if let StreamItem::Item(_) = said {
                    self.tools.push(tool);
                }
                return Poll::Ready(RunEvent::Tool(call_id, said));
            }
        }
        if let Some(model) = &mut self.model
            && let Poll::Ready(said) = model.poll(cx, few)
        {
            if let StreamItem::End(_) = said {
                self.model = None;
            }
            return Poll::Ready(RunEvent::Model(said));
        }
        Poll::Pending
    }

    fn take(&mut self, happened: RunEvent) {
        match happened {
            RunEvent::Cancelled => self.feed(Input::Cancel),
            RunEvent::GraceOver => self.feed(Input::GraceOver),
            RunEvent::TimeUp => self.feed(Input::TimeUp),
            RunEvent::JournalDue => self.write_journal(),
            RunEvent::Mail(_) => {}
            RunEvent::LaneLost => self.feed(Input::LaneLost),
            RunEvent::Committed(committed) => self.committed(committed),
            RunEvent::CommitOverdue => self.detach_commit(),
            RunEvent::Step(step) => self.step(step),
            RunEvent::Broken(text) => self.feed(Input::Issue(text)),
            RunEvent::Hooked(said) => {
                for issue in said.issues {
                    self.feed(Input::Issue(issue));
                }
                self.feed(Input::HookAnswered(said.verdict));
            }
            RunEvent::Compacted(compacted) => self.feed(Input::Compacted {
                block: compacted.block.map_err(|fault| fault.to_string()),
                after: compacted.after,
                usage: compacted.usage,
            }),
            RunEvent::Found(found) => self.found(found),
            RunEvent::KeyWaitDone { tools } => {
                self.resume_clock();
                self.start_model(tools);
            }
            RunEvent::Tool(call_id, StreamItem::Item(report)) => self.feed(match report {
                Progress::Shows(detail) => Input::ToolUpdate { call_id, detail },
                Progress::Printed(text) => Input::ToolOutput { call_id, text },
                Progress::Planned(entries) => Input::PlanUpdated { call_id, entries },
                Progress::Says(text) => Input::ToolProgress { call_id, text },
                Progress::Spent(child) => Input::ChildUsageReported { call_id, child },
            }),
            RunEvent::Tool(call_id, StreamItem::End(envelope)) => {
                self.feed(Input::ToolEnded { call_id, envelope });
            }
            RunEvent::Model(StreamItem::Item(ModelEvent::Delta(delta))) => {
                self.feed(Input::ModelDelta(delta))
            }
            RunEvent::Model(StreamItem::Item(ModelEvent::Retry(RetryNotice {
                attempt,
                fault,
                wait,
            }))) => self.feed(Input::ModelRetried {
                attempt,
                error: fault,
                wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            }),
            RunEvent::Model(StreamItem::Item(ModelEvent::Silent(silent))) => {
                self.feed(Input::ModelSilent {
                    silent_ms: u64::try_from(silent.length.as_millis()).unwrap_or(u64::MAX),
                    is_connected: silent.is_connected,
                })
            }
            RunEvent::Model(StreamItem::End(Ok(mut response))) => {
                self.task.history.distinguish_calls(&mut response);
                let announce = |call| self.task.toolbox.announce(call, &self.task.workspace);
                let calls = response.calls().map(announce).collect();
                self.feed(Input::ModelAnswered { response, calls });
            }
            RunEvent::Model(StreamItem::End(Err(fault))) => self.feed(Input::ModelFailed(fault)),
        }
    }

    fn feed(&mut self, input: Input) {
        self.feed_one(input);
        while let Some(input) = self.inputs.pop_front() {
            self.feed_one(input);
        }
    }

    fn feed_one(&mut self, input: Input) {
        let (now, out) = (turnery_store::now(), &mut self.out);
        match &input {
            // A sub-agent has charged the budget itself.
            Input::ChildUsageReported { call_id, .. } if is_sub_agent(&self.tools, call_id) => {
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

    /// Folds events, carries out immediate effects and queues the rest.
    fn process_effects(&mut self) {
        let mut out = mem::take(&mut self.out);
        let mut matters = false;
        for effect in out.drain(..) {
            matters |= must_be_journalled(&effect);
            if let Effect::Emit(event) = &effect {
                self.fold(event);
            }
            match effect_queue::classify_effect(effect) {
                EffectTiming::Later(step) => self.steps.push(step),
                EffectTiming::Now(ImmediateEffect::Commit(end)) => self.commit(&end),
                EffectTiming::Now(urgent) => self.urgent(urgent),
            }
        }
        // After a commit nothing is left to journal: the commit contains everything.
        if matters {
            self.journal_now();
        } else if self.journal_due.is_none() && self.events().len() > self.journalled {
            self.journal_due = Some(Box::pin(sleep_until(Instant::now() + JOURNAL_DELAY)));
        }
        self.out = out;
    }

    fn into_result(mut self, finish: LoopFinish) -> Result<LoopResult, PromptError> {
        match (finish, self.record.take()) {
            (LoopFinish::Committed { outcome, usage }, Some(record)) => {
                // Filters may have dropped or changed interjections that are not found among the messages.
                self.told.iter_mut().for_each(Interjection::mark_delivered);
                if self.is_overdue {
                    self.rewind_history();
                }
                Ok(LoopResult {
                    outcome,
                    usage,
                    elapsed: self.elapsed(),
                    record,
                    is_stored: !self.is_overdue,
                })
            }
            (LoopFinish::Committed { .. }, None) => Err(Self::missing_record_error().into()),
            (LoopFinish::CommitFailed(fault), _) => {
                if !faulty!(KeepLostMessages) {
                    self.rewind_history();
                }
                Err(PromptError::Lost(fault))
            }
        }
    }
}

fn is_sub_agent(tools: &[RunningTool], call_id: &CallId) -> bool {
    tools
        .iter()
        .any(|tool| tool.call_id == *call_id && tool.is_sub_agent)
}

/// Returns true if the events so far must survive a crash before this effect: a tool or model is about to
/// run, a call has ended, or the user is asked.
fn must_be_journalled(effect: &Effect) -> bool {
    match effect {
        Effect::RunTool(_) | Effect::CallModel { .. } | Effect::Compact(_) => true,
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
        | Effect::StopTool(_)
        | Effect::AbortTool(_)
        | Effect::StartGrace
        | Effect::Commit(_) => false,
    }
}
