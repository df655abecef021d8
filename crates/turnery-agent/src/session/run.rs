//! Run: one prompt from its first effect to its last.
//!
//! Everything that can happen to it is polled in one place, in a fixed order: cancel, grace and
//! limits, mail, the store, room in the outbox, verdicts, tool output, model output. The last two
//! are read only while few steps wait, so a slow client slows the model's stream, memory stays
//! bounded, and a cancel is heard at once all the same.

use super::{
    gate::{self, Found, Gate, Judged},
    leaf::{REPORTS_WAITING, RunningModel, RunningTool, Said},
    mail::Mail,
    steps::{self, Sorted, Step, Steps, Urgent},
    task::{PromptEnd, Task},
};
use crate::{CancellationToken, PromptError, PromptResult, sink::Shown, trace_sink::Call};
use chrono::Utc;
use futures_util::future::BoxFuture;
use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    sync::mpsc,
    time::{Instant, Sleep, sleep_until},
};
use turnery_engine::{
    Announced, CallId, CommitFault, Content, Effect, Event, EventKind, FailureKind, Finish, Input,
    Loop, LoopId, LoopSpec, ModelFault, PromptId, Recorder, Response, ToolCall, ToolEnvelope,
    usage::source,
};
use turnery_models::{ModelRequest, Retry, Told};
use turnery_store::{Commit, Lane, Opened, StoreError};
use turnery_tools::{Origin, Progress, ToolCx, grace};

/// How often the lane is renewed; it is held for three times as long.
const RENEW: Duration = Duration::from_secs(10);
/// How long events may wait to be journalled. A prompt that commits before is never journalled.
const JOURNAL: Duration = Duration::from_millis(20);

/// One running prompt.
pub(crate) struct Run<'t> {
    task: &'t mut Task,
    machine: Loop,
    recorder: Recorder,
    lane: Lane,
    steps: Steps,
    out: Vec<Effect>,
    inputs: VecDeque<Input>,
    /// How many of the record's events are journalled, or need not be.
    journalled: usize,
    /// When they are to be, at the latest.
    journal_due: Option<Pin<Box<Sleep>>>,
    cancelled: Option<BoxFuture<'static, ()>>,
    grace: Option<Pin<Box<Sleep>>>,
    deadline: Option<Pin<Box<Sleep>>>,
    /// Since when a person has been asked: that time does not count.
    asked_since: Option<Instant>,
    renew: Pin<Box<Sleep>>,
    renewing: Option<BoxFuture<'static, Result<(), StoreError>>>,
    committing: Option<BoxFuture<'static, Result<u64, StoreError>>>,
    gate: Option<Gate>,
    tool: Option<RunningTool>,
    model: Option<RunningModel>,
    title_is_new: bool,
}

/// What happened next.
enum Happened {
    Cancelled,
    GraceOver,
    TimeUp,
    JournalDue,
    Mail(Option<Mail>),
    RenewDue,
    Renewed(Result<(), StoreError>),
    Committed(Result<u64, StoreError>),
    Step(Step),
    /// A sink.
    Broken(String),
    Found(Found),
    Tool(CallId, Said<Progress, ToolEnvelope>),
    Model(Said<Told, Result<Response, ModelFault>>),
}

impl<'t> Run<'t> {
    /// Begin a loop for a prompt.
    pub(crate) fn begin(
        task: &'t mut Task,
        opened: Opened,
        input: Vec<Content>,
        cancel: CancellationToken,
        cancel_all: CancellationToken,
    ) -> Self {
        let config = task.model.info().snapshot(task.settings.thinking);
        let segment = task.model.info().name.segment();
        let session_id = task.info.id.clone();
        let limits = task.settings.limits;
        let loop_id = LoopId::from(format!("{session_id}.{segment}.{}", opened.loop_count + 1));
        let prompt_id = PromptId::from(uuid::Uuid::now_v7().to_string());
        let spec = LoopSpec {
            parent_loop_id: task.info.tip_loop_id.clone(),
            limits,
            ..LoopSpec::prompt(session_id, loop_id, prompt_id, config, input)
        };
        task.history.mark();
        let now = Instant::now();
        let mut out = Vec::new();
        let machine = Loop::start(spec, Utc::now(), &mut out);
        let mut run = Self {
            task,
            machine,
            recorder: Recorder::new(),
            lane: opened.lane,
            steps: Steps::default(),
            out,
            inputs: VecDeque::new(),
            journalled: 0,
            journal_due: None,
            cancelled: Some(Box::pin(async move {
                tokio::select! {
                    () = cancel.cancelled() => {}
                    () = cancel_all.cancelled() => {}
                }
            })),
            grace: None,
            asked_since: None,
            deadline: now
                .checked_add(limits.duration)
                .map(|at| Box::pin(sleep_until(at))),
            renew: Box::pin(sleep_until(now + RENEW)),
            renewing: None,
            committing: None,
            gate: None,
            tool: None,
            model: None,
            title_is_new: false,
        };
        run.absorb();
        run
    }

    /// Drive the loop to its end.
    pub(crate) async fn finish(mut self) -> PromptEnd {
        loop {
            let finish = match poll_fn(|cx| self.poll_next(cx)).await {
                Happened::Step(Step::Finish(finish)) => finish,
                Happened::Mail(Some(mail)) => {
                    self.task.mail(mail).await;
                    continue;
                }
                happened => {
                    self.take(happened);
                    continue;
                }
            };
            return match finish {
                Finish::Done {
                    outcome,
                    detail,
                    usage,
                } => Ok(PromptResult {
                    outcome,
                    detail,
                    usage,
                }),
                Finish::Lost(fault) => {
                    if !faulty!(KeepLostMessages) {
                        self.task.history.rewind();
                    }
                    // The lane may be gone already; a release never clears a newer holder.
                    let _ = self.task.store.release(&self.lane).await;
                    Err(PromptError::Lost(fault))
                }
            };
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Happened> {
        if let Some(cancelled) = &mut self.cancelled
            && cancelled.as_mut().poll(cx).is_ready()
        {
            self.cancelled = None;
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
        if let Some(due) = &mut self.journal_due
            && due.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Happened::JournalDue);
        }
        if !self.task.mailbox.is_closed()
            && let Poll::Ready(mail) = self.task.mailbox.poll_recv(cx)
            && mail.is_some()
        {
            return Poll::Ready(Happened::Mail(mail));
        }
        if let Some(renewing) = &mut self.renewing {
            if let Poll::Ready(renewed) = renewing.as_mut().poll(cx) {
                self.renewing = None;
                return Poll::Ready(Happened::Renewed(renewed));
            }
        } else if self.renew.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Happened::RenewDue);
        }
        if let Some(committing) = &mut self.committing
            && let Poll::Ready(committed) = committing.as_mut().poll(cx)
        {
            self.committing = None;
            return Poll::Ready(Happened::Committed(committed));
        }
        let mut shown = Shown {
            outbox: &mut *self.task.ports.outbox,
            tap: &mut self.task.tap,
        };
        if let Poll::Ready(broken) = shown.tap.poll_broken(cx) {
            return Poll::Ready(Happened::Broken(broken));
        }
        if let Poll::Ready(step) = self.steps.poll_next(cx, &mut shown, &self.task.info) {
            return Poll::Ready(Happened::Step(step));
        }
        if let Some(gate) = &mut self.gate
            && let Poll::Ready(found) = gate.poll(cx)
        {
            self.gate = None;
            return Poll::Ready(Happened::Found(found));
        }
        if let Some(tool) = &mut self.tool
            && let Poll::Ready(said) = tool.poll(cx, self.steps.few())
        {
            let call_id = tool.call_id.clone();
            if let Said::End(_) = said {
                self.tool = None;
            }
            return Poll::Ready(Happened::Tool(call_id, said));
        }
        if let Some(model) = &mut self.model
            && let Poll::Ready(said) = model.poll(cx, self.steps.few())
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
            Happened::RenewDue => {
                self.renew.as_mut().reset(Instant::now() + RENEW);
                let (store, lane) = (Arc::clone(&self.task.store), self.lane.clone());
                self.renewing = Some(Box::pin(async move { store.renew(&lane).await }));
            }
            // Any other fault of the store shows at the commit.
            Happened::Renewed(Err(StoreError::LaneLost(_))) => self.feed(Input::LaneLost),
            Happened::Renewed(_) => {}
            Happened::Committed(committed) => self.committed(committed),
            Happened::Step(step) => self.step(step),
            Happened::Broken(text) => self.feed(Input::Noticed(text)),
            Happened::Found(found) => self.found(found),
            Happened::Tool(call_id, Said::Item(report)) => self.feed(match report {
                Progress::Shows(detail) => Input::Shows { call_id, detail },
                Progress::Printed(text) => Input::Printed { call_id, text },
                Progress::Planned(entries) => Input::Planned { call_id, entries },
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
            Happened::Model(Said::End(Ok(mut response))) => {
                self.task.history.distinguish_calls(&mut response);
                let announce = |call| Announced {
                    detail: self.task.toolbox.describe(call, &self.task.workspace),
                    parallel: false,
                };
                let calls = response.calls().map(announce).collect();
                self.feed(Input::Answered { response, calls });
            }
            Happened::Model(Said::End(Err(fault))) => self.feed(Input::ModelFailed(fault)),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Show(_) | Step::Info | Step::Finish(_) => {}
            Step::CallModel { tools } => self.model = Some(self.call_model(tools)),
            Step::Gate(call) => {
                let (cx, _) = self.tool_cx(&call);
                self.gate = Some(Gate::prepare(call, self.task.toolbox.clone(), cx));
            }
            Step::Ask(question) => {
                let client = Arc::clone(&self.task.ports.client);
                self.gate = Some(Gate::ask(question, client));
                self.asked_since = Some(Instant::now());
            }
            Step::Run(call) => {
                let (cx, reports) = self.tool_cx(&call);
                let toolbox = self.task.toolbox.clone();
                self.tool = Some(RunningTool::run(toolbox, call, cx, reports));
            }
        }
    }

    fn found(&mut self, found: Found) {
        match found {
            Found::Prepared(call, Err(failure)) => self.feed(Input::Ended {
                call_id: call.call_id,
                envelope: ToolEnvelope {
                    result: Err(failure),
                    ..ToolEnvelope::ok(Vec::new())
                },
            }),
            Found::Prepared(call, Ok(prepared)) => {
                let detail = prepared.detail.clone();
                let judged = gate::judge(
                    &self.task.policy,
                    &self.task.info.id,
                    &call,
                    prepared,
                    &self.task.workspace,
                );
                let call_id = call.call_id;
                match judged {
                    Judged::Settled(verdict) => self.feed(Input::Verdict { call_id, verdict }),
                    Judged::Ask(question) => {
                        self.feed(Input::Asking { call_id, detail });
                        self.steps.push(Step::Ask(question));
                    }
                }
            }
            Found::Answered(question, answer) => {
                if let Some(since) = self.asked_since.take()
                    && let Some(deadline) = &mut self.deadline
                {
                    let later = deadline.deadline() + since.elapsed();
                    deadline.as_mut().reset(later);
                }
                let verdict = gate::settle(&mut self.task.policy, &question, answer);
                let call_id = question.ask.call_id;
                self.feed(Input::Verdict { call_id, verdict });
            }
        }
    }

    fn committed(&mut self, committed: Result<u64, StoreError>) {
        let input = match committed {
            Ok(head) => {
                let record = self.recorder.record();
                self.task.info.head_version = head;
                self.task.info.updated_at = Utc::now();
                if record.is_some_and(|record| record.on_chain) {
                    self.task.info.tip_loop_id = Some(self.machine.spec().loop_id.clone());
                } else if !faulty!(KeepRefusedMessages) {
                    self.task.history.rewind();
                }
                if self.title_is_new {
                    self.steps.push(Step::Info);
                }
                Input::Committed
            }
            Err(StoreError::LaneLost(_)) => Input::CommitFailed(CommitFault::LaneLost),
            Err(StoreError::HeadConflict { .. }) => Input::CommitFailed(CommitFault::HeadConflict),
            Err(error) => Input::CommitFailed(CommitFault::Store(error.to_string())),
        };
        self.feed(input);
    }

    fn feed(&mut self, input: Input) {
        self.machine.on(Utc::now(), input, &mut self.out);
        self.absorb();
        while let Some(input) = self.inputs.pop_front() {
            self.machine.on(Utc::now(), input, &mut self.out);
            self.absorb();
        }
    }

    /// Fold what happened, do what cannot wait, and line up the rest.
    fn absorb(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        let mut acts = false;
        for effect in out.drain(..) {
            acts |= matches!(effect, Effect::Run(_));
            if let Effect::Emit(event) = &effect {
                self.fold(event);
            }
            match steps::sort(effect) {
                Sorted::Later(step) => self.steps.push(step),
                Sorted::Now(Urgent::Commit(end)) => self.commit(&end),
                Sorted::Now(urgent) => self.urgent(urgent),
            }
        }
        // The commit holds all that the journal would. What a tool is going to do to the world must
        // be known before it does it.
        if acts {
            self.write_journal();
        } else if self.journal_due.is_none() && self.events().len() > self.journalled {
            self.journal_due = Some(Box::pin(sleep_until(Instant::now() + JOURNAL)));
        }
        self.out = out;
    }

    /// The events of the record so far: all but the streaming ones.
    fn events(&self) -> &[Event] {
        self.recorder.record().map_or(&[], |record| &record.events)
    }

    fn write_journal(&mut self) {
        self.journal_due = None;
        let events = self.events()[self.journalled..].to_vec();
        if !events.is_empty() {
            self.journalled += events.len();
            let loop_id = &self.machine.spec().loop_id;
            self.task.store.append(&self.lane, loop_id, events);
        }
    }

    fn fold(&mut self, event: &Event) {
        self.recorder.fold(event);
        if let EventKind::MessageEnd { message } = &event.kind {
            self.task.history.push(Arc::clone(message));
        }
    }

    fn urgent(&mut self, urgent: Urgent) {
        match urgent {
            Urgent::StopModel if faulty!(LeaveModelRunning) => {}
            Urgent::Withdraw(_) if faulty!(LeaveQuestionOpen) => {}
            Urgent::StopModel => {
                self.model = None;
                self.steps.forget_model();
            }
            Urgent::Withdraw(call_id) => {
                self.steps.forget_gate(&call_id);
                if self
                    .gate
                    .as_ref()
                    .is_some_and(|gate| *gate.call_id() == call_id)
                {
                    self.gate = None;
                }
            }
            Urgent::StopTool(call_id) => {
                if self.steps.forget_run(&call_id) {
                    let envelope =
                        ToolEnvelope::failed(FailureKind::Cancelled, "cancelled before it began");
                    self.inputs.push_back(Input::Ended { call_id, envelope });
                } else if let Some(tool) = self.tool.as_ref().filter(|tool| tool.call_id == call_id)
                {
                    tool.stop();
                }
            }
            Urgent::AbortTool(call_id) => {
                self.steps.forget_run(&call_id);
                if self
                    .tool
                    .as_ref()
                    .is_some_and(|tool| tool.call_id == call_id)
                {
                    self.tool = None;
                }
            }
            Urgent::StartGrace => {
                self.grace = Some(Box::pin(sleep_until(Instant::now() + grace::CALL)));
            }
            Urgent::Nothing => {}
            Urgent::Unasked(input) => self.inputs.push_back(*input),
            Urgent::Commit(_) => {}
        }
    }

    fn commit(&mut self, end: &Event) {
        self.recorder.fold(end);
        self.journalled = self.events().len();
        self.journal_due = None;
        let Some(record) = self.recorder.record().cloned() else {
            self.inputs
                .push_back(Input::CommitFailed(CommitFault::Store(
                    "no record".to_owned(),
                )));
            return;
        };
        let title = match &self.task.info.title {
            Some(_) => None,
            None => super::history::title(&record.messages),
        };
        self.title_is_new = title.is_some() && record.on_chain;
        if self.title_is_new {
            self.task.info.title.clone_from(&title);
        }
        let commit = Commit {
            lane: self.lane.clone(),
            expected_head: self.task.info.head_version,
            records: vec![Arc::new(record)],
            tip: 0,
            title: title.filter(|_| self.title_is_new),
            release: true,
        };
        let store = Arc::clone(&self.task.store);
        self.committing = Some(Box::pin(async move { store.commit(commit).await }));
    }

    fn call_model(&self, tools: bool) -> RunningModel {
        let task = &*self.task;
        let trace = task.tracing.begin(Call {
            session_id: task.info.id.clone(),
            loop_id: self.machine.spec().loop_id.clone(),
            source: source::TURN,
            model: &task.model.info().name,
        });
        let request = ModelRequest {
            session_id: task.info.id.clone(),
            system: Arc::clone(&task.settings.system),
            messages: task.history.messages(),
            tools: if tools {
                task.toolbox.specs()
            } else {
                Arc::new([])
            },
            thinking: task.settings.thinking,
        };
        RunningModel::call(Arc::clone(&task.model), request, trace)
    }

    fn tool_cx(&self, call: &ToolCall) -> (ToolCx, mpsc::Receiver<Progress>) {
        let (progress, reports) = mpsc::channel(REPORTS_WAITING);
        let spec = self.machine.spec();
        let cx = ToolCx {
            call_id: call.call_id.clone(),
            origin: Origin {
                run_id: Some(spec.loop_id.clone()),
                agent_id: Some(spec.agent_id.as_str().into()),
                thread_id: Some(spec.session_id.clone()),
                iteration: self.machine.turn_index(),
            },
            workspace: Arc::clone(&self.task.workspace),
            hidden: self.task.policy.hidden_from(&call.name),
            progress,
            cancel: CancellationToken::new(),
        };
        (cx, reports)
    }
}
