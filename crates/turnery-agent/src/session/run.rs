//! Run: one loop from its first effect to its last.
//!
//! Everything that can happen to it is polled in one place, in a fixed order: cancel, grace and
//! limits, mail, the lane, the store, room in the outbox, hooks, verdicts, tool output, model output.
//! The last two are read only while few steps wait, so a slow client slows the model's stream, memory
//! stays bounded, and a cancel is heard at once all the same.

pub(super) mod beginning;
mod doing;
mod keeping;

use self::beginning::specify;
use super::{
    History,
    gate::{Found, Gate},
    leaf::{RunningModel, RunningTool, Said},
    mail::{Mail, When, Word},
    plan::Plan,
    prompting::Scope,
    steps::{self, Sorted, Step, Steps, Urgent},
    task::Task,
    watch::Watch,
};
use crate::{Compacted, PromptError, hooks, sink::Shown};
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
    CallId, Detail, Effect, Event, EventKind, Finish, Input, Loop, LoopId, LoopRecord, ModelFault,
    Outcome, Recorder, Response, ToolEnvelope, Usage,
};
use turnery_models::{Retry, Told};
use turnery_store::StoreError;
use turnery_tools::{LineLimits, Progress};

/// How long events may wait to be journalled. A loop that commits before is never journalled.
const JOURNAL: Duration = Duration::from_millis(20);

/// One running loop.
pub(crate) struct Run<'t> {
    task: &'t mut Task,
    watch: &'t mut Watch,
    scope: &'t Scope,
    /// The history of before, while the loop goes on from elsewhere and is not on the chain yet.
    aside: Option<History>,
    machine: Loop,
    recorder: Recorder,
    /// What was given to the store.
    record: Option<Arc<LoopRecord>>,
    steps: Steps,
    out: Vec<Effect>,
    inputs: VecDeque<Input>,
    /// How many of the record's events are journalled, or need not be.
    journalled: usize,
    /// When they are to be, at the latest.
    journal_due: Option<Pin<Box<Sleep>>>,
    /// Events that are being journalled; no step is taken meanwhile.
    journalling: Option<BoxFuture<'static, Result<(), StoreError>>>,
    /// Events to be journalled after those.
    unwritten: Vec<Event>,
    cancel_heard: bool,
    /// Ready when the cancelled prompt waits for its commit no longer.
    patience: Option<BoxFuture<'static, ()>>,
    /// Set once the commit goes on in the background.
    is_overdue: bool,
    grace: Option<Pin<Box<Sleep>>>,
    deadline: Option<Pin<Box<Sleep>>>,
    /// Since when a person has been asked: that time does not count.
    asked_since: Option<Instant>,
    committing: Option<BoxFuture<'static, Result<u64, StoreError>>>,
    hook: Option<BoxFuture<'static, hooks::Said>>,
    compacting: Option<BoxFuture<'static, Compacted>>,
    gate: Option<Gate>,
    /// Limits of judged command lines that have not run yet.
    line_limits: HashMap<CallId, LineLimits>,
    tools: Vec<RunningTool>,
    /// The person gives the key that the next call needs.
    keying: Option<Keying>,
    model: Option<RunningModel>,
    /// What has been said to it; kept until it is over, so that it counts as long.
    told: Vec<Word>,
    title_is_new: bool,
}

/// A call that waits for its key.
struct Keying {
    /// Whether the call offers tools.
    tools: bool,
    settled: BoxFuture<'static, ()>,
}

/// How a loop ended that was stored.
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) detail: Option<Detail>,
    pub(crate) usage: Usage,
    /// Time of the prompt that counts against its limits.
    pub(crate) elapsed: Duration,
    pub(crate) record: Arc<LoopRecord>,
    /// False if the commit goes on in the background.
    pub(crate) is_stored: bool,
}

/// What happened next.
enum Happened {
    Cancelled,
    GraceOver,
    TimeUp,
    JournalDue,
    Mail(Mail),
    LaneLost,
    Committed(Result<u64, StoreError>),
    CommitOverdue,
    Step(Step),
    /// A sink.
    Broken(String),
    Hooked(hooks::Said),
    Compacted(Compacted),
    Found(Found),
    /// Whoever was asked for a key has given it, or will not. With or without tools the call goes on.
    Keyed {
        tools: bool,
    },
    Tool(CallId, Said<Progress, ToolEnvelope>),
    Model(Said<Told, Result<Response, ModelFault>>),
}

impl<'t> Run<'t> {
    /// Begin a loop.
    pub(crate) fn begin(
        task: &'t mut Task,
        watch: &'t mut Watch,
        scope: &'t Scope,
        mut plan: Plan,
        loop_id: LoopId,
    ) -> Self {
        let base = plan.base.take();
        let history = base.as_ref().unwrap_or(&task.history);
        let spec = specify(task, scope, history, plan, loop_id);
        let aside = base.map(|mut base| {
            base.remember(&task.history);
            mem::replace(&mut task.history, base)
        });
        task.history.mark();
        let recorder = match task.settings.keep_streaming {
            true => Recorder::keeping_streaming(),
            false => Recorder::new(),
        };
        let mut out = Vec::new();
        let machine = scope.budget.start(spec, turnery_store::now(), &mut out);
        let pending = watch.beginning.take();
        let loop_id = &machine.spec().loop_id;
        let journalled = pending.map_or(0, |pending| pending.begin(loop_id, &out));
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
            steps: Steps::default(),
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
        run.absorb();
        run.hear();
        run
    }

    /// Tell the loop what has been said to the prompt. What it will not say to the model comes back.
    fn hear(&mut self) {
        while !self.machine.is_sealed()
            && let Some(word) = self.task.words.pop_front()
        {
            let content = word.content.clone();
            let when = word.when;
            self.told.push(word);
            self.feed(match when {
                When::Soon => Input::Steer(content),
                When::AtTheEnd => Input::FollowUp(content),
            });
        }
    }

    /// Drive the loop to its end.
    pub(crate) async fn finish(mut self) -> Result<Ended, PromptError> {
        loop {
            let finish = match poll_fn(|cx| self.poll_next(cx)).await {
                Happened::Step(Step::Finish(finish)) => finish,
                Happened::Mail(mail) => {
                    self.task.mail(mail);
                    self.hear();
                    continue;
                }
                happened => {
                    self.take(happened);
                    continue;
                }
            };
            return self.ended(finish);
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Happened> {
        if !self.cancel_heard && self.watch.poll_cancelled(cx) {
            self.cancel_heard = true;
            self.limit_commit();
            return Poll::Ready(Happened::Cancelled);
        }
        if let Some(grace) = &mut self.grace
            && grace.as_mut().poll(cx).is_ready()
        {
            self.grace = None;
            return Poll::Ready(Happened::GraceOver);
        }
        if self.asked_since.is_none()
            && let Some(deadline) = &mut self.deadline
            && deadline.as_mut().poll(cx).is_ready()
        {
            self.deadline = None;
            return Poll::Ready(Happened::TimeUp);
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
            return Poll::Ready(Happened::JournalDue);
        }
        if let Poll::Ready(Some(mail)) = self.task.poll_mail(cx) {
            return Poll::Ready(Happened::Mail(mail));
        }
        if self.watch.poll_lane(cx, &self.task.store).is_ready() {
            return Poll::Ready(Happened::LaneLost);
        }
        // The store drops the journal of a loop that it commits, so the commit comes last.
        if self.journalling.is_none()
            && let Some(committing) = &mut self.committing
            && let Poll::Ready(committed) = committing.as_mut().poll(cx)
        {
            self.committing = None;
            self.patience = None;
            return Poll::Ready(Happened::Committed(committed));
        }
        if let Some(patience) = &mut self.patience
            && patience.as_mut().poll(cx).is_ready()
        {
            self.patience = None;
            return Poll::Ready(Happened::CommitOverdue);
        }
        let mut shown = Shown {
            outbox: &mut *self.task.ports.outbox,
            tap: &mut self.task.tap,
            observing: &mut self.task.observing,
        };
        if let Poll::Ready(broken) = shown.tap.poll_broken(cx) {
            return Poll::Ready(Happened::Broken(broken));
        }
        if self.journalling.is_none()
            && let Poll::Ready(step) = self.steps.poll_next(cx, &mut shown, &self.task.info)
        {
            return Poll::Ready(Happened::Step(step));
        }
        if let Poll::Ready(broken) = self.task.tap.poll_told() {
            return Poll::Ready(Happened::Broken(broken));
        }
        self.poll_work(cx)
    }

    fn poll_work(&mut self, cx: &mut Context<'_>) -> Poll<Happened> {
        if let Some(hook) = &mut self.hook
            && let Poll::Ready(said) = hook.as_mut().poll(cx)
        {
            self.hook = None;
            return Poll::Ready(Happened::Hooked(said));
        }
        if let Some(compacting) = &mut self.compacting
            && let Poll::Ready(compacted) = compacting.as_mut().poll(cx)
        {
            self.compacting = None;
            return Poll::Ready(Happened::Compacted(compacted));
        }
        if let Some(gate) = &mut self.gate
            && let Poll::Ready(found) = gate.poll(cx)
        {
            self.gate = None;
            return Poll::Ready(Happened::Found(found));
        }
        if let Some(keying) = &mut self.keying
            && keying.settled.as_mut().poll(cx).is_ready()
        {
            let tools = keying.tools;
            self.keying = None;
            return Poll::Ready(Happened::Keyed { tools });
        }
        let few = self.steps.few();
        for place in 0..self.tools.len() {
            if let Poll::Ready(said) = self.tools[place].poll(cx, few) {
                // To the end of the queue: one that says much must not keep the others waiting.
                let tool = self.tools.remove(place);
                let call_id = tool.call_id.clone();
                if let Said::Item(_) = said {
                    self.tools.push(tool);
                }
                return Poll::Ready(Happened::Tool(call_id, said));
            }
        }
        if let Some(model) = &mut self.model
            && let Poll::Ready(said) = model.poll(cx, few)
        {
            if let Said::End(_) = said {
                self.model = None;
            }
            return Poll::Ready(Happened::Model(said));
        }
        Poll::Pending
    }

    fn take(&mut self, happened: Happened) {
        match happened {
            Happened::Cancelled => self.feed(Input::Cancel),
            Happened::GraceOver => self.feed(Input::GraceOver),
            Happened::TimeUp => self.feed(Input::TimeUp),
            Happened::JournalDue => self.write_journal(),
            Happened::Mail(_) => {}
            Happened::LaneLost => self.feed(Input::LaneLost),
            Happened::Committed(committed) => self.committed(committed),
            Happened::CommitOverdue => self.leave_commit(),
            Happened::Step(step) => self.step(step),
            Happened::Broken(text) => self.feed(Input::Noticed(text)),
            Happened::Hooked(said) => {
                for issue in said.issues {
                    self.feed(Input::Noticed(issue));
                }
                self.feed(Input::Hooked(said.verdict));
            }
            Happened::Compacted(compacted) => self.feed(Input::Compacted {
                block: compacted.block.map_err(|fault| fault.to_string()),
                after: compacted.after,
                usage: compacted.usage,
            }),
            Happened::Found(found) => self.found(found),
            Happened::Keyed { tools } => {
                self.person_is_done();
                self.start_model(tools);
            }
            Happened::Tool(call_id, Said::Item(report)) => self.feed(match report {
                Progress::Shows(detail) => Input::Shows { call_id, detail },
                Progress::Printed(text) => Input::Printed { call_id, text },
                Progress::Planned(entries) => Input::Planned { call_id, entries },
                Progress::Says(text) => Input::Progressed { call_id, text },
                Progress::Spent(child) => Input::ChildSpent { call_id, child },
            }),
            Happened::Tool(call_id, Said::End(envelope)) => {
                self.feed(Input::Ended { call_id, envelope });
            }
            Happened::Model(Said::Item(Told::Delta(delta))) => self.feed(Input::Delta(delta)),
            Happened::Model(Said::Item(Told::Retry(Retry {
                attempt,
                fault,
                wait,
            }))) => self.feed(Input::Retried {
                attempt,
                fault,
                wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            }),
            Happened::Model(Said::Item(Told::Silent(silent))) => self.feed(Input::Silent {
                silent_ms: u64::try_from(silent.length.as_millis()).unwrap_or(u64::MAX),
                is_connected: silent.is_connected,
            }),
            Happened::Model(Said::End(Ok(mut response))) => {
                self.task.history.distinguish_calls(&mut response);
                let announce = |call| self.task.toolbox.announce(call, &self.task.workspace);
                let calls = response.calls().map(announce).collect();
                self.feed(Input::Answered { response, calls });
            }
            Happened::Model(Said::End(Err(fault))) => self.feed(Input::ModelFailed(fault)),
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
            // It has taken that from the budget itself.
            Input::ChildSpent { call_id, .. } if is_sub_agent(&self.tools, call_id) => {
                self.machine.on(now, input, out);
            }
            // These spend nothing.
            Input::Delta(_) | Input::Price(_) => self.machine.on(now, input, out),
            _ => {
                let budget = &self.scope.budget;
                budget.feed(&mut self.machine, now, input, out);
            }
        }
        self.absorb();
    }

    /// Fold what happened, do what cannot wait, and line up the rest.
    fn absorb(&mut self) {
        let mut out = mem::take(&mut self.out);
        let mut matters = false;
        for effect in out.drain(..) {
            matters |= must_be_journalled(&effect);
            if let Effect::Emit(event) = &effect {
                self.fold(event);
            }
            match steps::sort(effect) {
                Sorted::Later(step) => self.steps.push(step),
                Sorted::Now(Urgent::Commit(end)) => self.commit(&end),
                Sorted::Now(urgent) => self.urgent(urgent),
            }
        }
        // The commit holds all that the journal would.
        if matters {
            self.journal_now();
        } else if self.journal_due.is_none() && self.events().len() > self.journalled {
            self.journal_due = Some(Box::pin(sleep_until(Instant::now() + JOURNAL)));
        }
        self.out = out;
    }

    fn ended(mut self, finish: Finish) -> Result<Ended, PromptError> {
        match (finish, self.record.take()) {
            (
                Finish::Done {
                    outcome,
                    detail,
                    usage,
                },
                Some(record),
            ) => {
                // A filter may have dropped or changed what is not found among the messages.
                self.told.iter_mut().for_each(Word::hear);
                if self.is_overdue {
                    self.forget();
                }
                Ok(Ended {
                    outcome,
                    detail,
                    usage,
                    elapsed: self.elapsed(),
                    record,
                    is_stored: !self.is_overdue,
                })
            }
            (Finish::Done { .. }, None) => Err(Self::unrecorded().into()),
            (Finish::Lost(fault), _) => {
                if !faulty!(KeepLostMessages) {
                    self.forget();
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

/// Whether what happened up to here has to survive a crash from now on: a tool or a model is about to do
/// something, a call is over, or a person is asked.
fn must_be_journalled(effect: &Effect) -> bool {
    match effect {
        Effect::Run(_) | Effect::CallModel { .. } | Effect::Compact(_) => true,
        Effect::Emit(event) => matches!(
            event.kind,
            EventKind::ToolExecutionEnd { .. } | EventKind::PermissionRequested { .. }
        ),
        Effect::Publish(_)
        | Effect::Gate(_)
        | Effect::Finish(_)
        | Effect::Hook(_)
        | Effect::StopHook
        | Effect::StopCompaction
        | Effect::Unheard(_)
        | Effect::StopModel
        | Effect::Withdraw(_)
        | Effect::StopTool(_)
        | Effect::AbortTool(_)
        | Effect::StartGrace
        | Effect::Commit(_) => false,
    }
}
