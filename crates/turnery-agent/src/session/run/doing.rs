//! Doing: how the effects of a loop are carried out, in their turn or at once.

use super::{Keying, Run};
use crate::{
    CancellationToken, Compaction, Settings, UnknownPrice,
    hooks::HookCx,
    session::{
        gate::{self, Found, Gate, Judged, JudgedCall},
        leaf::{REPORTS_WAITING, RunningModel, RunningTool},
        most,
        steps::{Step, Urgent},
    },
    subagent::{self, CHILD_TURNS, Parent},
    trace_sink::{Call, Trace},
};
use std::{any::Any, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use turnery_engine::{
    ContextSize, FailureKind, FaultKind, Hook, Input, ModelFault, ToolCall, ToolEnvelope,
    usage::source,
};
use turnery_models::{MissingKey, Model, ModelRequest};
use turnery_tools::{LineLimits, Origin, Prepared, Progress, ToolCx, grace};

impl Run<'_> {
    pub(super) fn step(&mut self, step: Step) {
        match step {
            Step::Show(_) | Step::Info | Step::Finish(_) => {}
            Step::CallModel { tools } => {
                self.task.refresh_tools();
                let name = &self.loop_model().info().name;
                match self.task.models.ready(name) {
                    Ok(()) => self.start_model(tools),
                    Err(missing) => self.want_key(missing, tools),
                }
            }
            Step::Hook(hook) => self.ask_hooks(hook),
            Step::Compact(before) => self.compact(before),
            Step::Gate(call) => {
                self.task.shown_as.teach(&mut self.task.policy);
                let (cx, _) = self.tool_cx(&call);
                let toolbox = self.task.tools.for_call(&self.task.toolbox, &call.name);
                self.gate = Some(Gate::prepare(call, toolbox, cx));
            }
            Step::Ask(question) => {
                let client = Arc::clone(&self.task.ports.client);
                let (known, store) = (self.task.shown_as.clone(), Arc::clone(&self.task.store));
                self.gate = Some(Gate::ask(question, client, known, store));
                self.asked_since = Some(Instant::now());
            }
            Step::Run(call) => {
                self.task.shown_as.teach(&mut self.task.policy);
                self.task.refresh_tools();
                let (mut cx, reports) = self.tool_cx(&call);
                cx.line_limits = self.line_limits.remove(&call.call_id).unwrap_or_default();
                let toolbox = self.task.toolbox.clone();
                let tool = RunningTool::run(toolbox, call, cx, reports);
                self.tools.push(tool);
            }
        }
    }

    fn ask_hooks(&mut self, hook: Hook) {
        let cx = HookCx {
            session_id: self.task.info.id.clone(),
            loop_id: self.machine.spec().loop_id.clone(),
            messages: self.task.history.messages(),
        };
        self.hook = Some(Box::pin(self.scope.hooks.clone().ask(cx, hook)));
    }

    fn compact(&mut self, before: ContextSize) {
        if let Err(unknown) = self.set_price() {
            let block = Err(unknown.to_string());
            return self.feed(Input::Compacted {
                block,
                after: before,
                usage: None,
            });
        }
        let task = &*self.task;
        let model = self.scope.model.as_ref().unwrap_or(&task.model);
        let compaction = Compaction {
            session_id: task.info.id.clone(),
            view: task.history.view.clone(),
            before,
            overhead: task.overhead,
            settings: task.settings.compaction,
        };
        let begin = self.tracing(source::COMPACTION, model);
        let compacted = compaction.traced(Arc::clone(model), begin);
        self.compacting = Some(Box::pin(compacted));
    }

    pub(super) fn found(&mut self, found: Found) {
        match found {
            Found::Prepared(call, Err(failure)) => self.feed(Input::Ended {
                call_id: call.call_id,
                envelope: most::bounded(failure),
            }),
            Found::Prepared(call, Ok(prepared)) => self.judge(call, prepared),
            Found::Judged(judged) => {
                let JudgedCall {
                    call,
                    prepared,
                    policy,
                    judgement,
                    limits,
                } = *judged;
                self.task.shown_as.teach(&mut self.task.policy);
                // The mode was set or a rule was added meanwhile.
                if policy != self.task.policy {
                    return self.judge(call, prepared);
                }
                let detail = prepared.detail;
                let followed = gate::follow(judgement, &self.task.info.id, &call, detail.clone());
                let call_id = call.call_id;
                self.line_limits.insert(call_id.clone(), limits);
                match followed {
                    Judged::Settled(verdict) => self.feed(Input::Verdict { call_id, verdict }),
                    Judged::Ask(question) => {
                        self.feed(Input::Asking { call_id, detail });
                        self.steps.push(Step::Ask(question));
                    }
                }
            }
            Found::Answered(question, answer) => {
                self.person_is_done();
                let verdict = gate::settle(&question, answer);
                let call_id = question.ask.call_id;
                self.feed(Input::Verdict { call_id, verdict });
            }
        }
    }

    fn judge(&mut self, call: ToolCall, prepared: Prepared) {
        self.task.shown_as.teach(&mut self.task.policy);
        let (policy, workspace) = (self.task.policy.clone(), Arc::clone(&self.task.workspace));
        self.gate = Some(Gate::judge(call, prepared, policy, workspace));
    }

    pub(super) fn urgent(&mut self, urgent: Urgent) {
        match urgent {
            Urgent::StopModel if faulty!(LeaveModelRunning) => {}
            Urgent::Withdraw(_) if faulty!(LeaveQuestionOpen) => {}
            Urgent::StopModel => {
                if self.keying.take().is_some() {
                    self.person_is_done();
                }
                self.model = None;
                self.steps.forget_model();
            }
            Urgent::StopHook => {
                self.hook = None;
                self.steps.forget_hook();
            }
            Urgent::StopCompaction => {
                self.compacting = None;
                self.steps.forget_compaction();
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
                } else if let Some(tool) = self.tools.iter().find(|tool| tool.call_id == call_id) {
                    tool.stop();
                }
            }
            Urgent::AbortTool(call_id) => {
                self.steps.forget_run(&call_id);
                self.tools.retain(|tool| tool.call_id != call_id);
            }
            Urgent::StartGrace => {
                self.grace = Some(Box::pin(sleep_until(Instant::now() + grace::CALL)));
            }
            Urgent::Unheard(_) if faulty!(ForgetUnheardWords) => {}
            Urgent::Unheard(words) => {
                let place = self
                    .told
                    .iter()
                    .position(|word| !word.is_heard && word.content == words);
                self.task
                    .words
                    .extend(place.map(|place| self.told.remove(place)));
            }
            Urgent::Commit(_) => {}
        }
    }

    /// The model that answers here.
    fn loop_model(&self) -> &Arc<dyn Model> {
        self.scope.model.as_ref().unwrap_or(&self.task.model)
    }

    /// Let the person give the key that the call needs, before it is made. Their time is not the loop's.
    fn want_key(&mut self, missing: MissingKey, tools: bool) {
        let client = Arc::clone(&self.task.ports.client);
        let session_id = self.task.info.id.clone();
        self.asked_since = Some(Instant::now());
        self.keying = Some(Keying {
            tools,
            settled: Box::pin(async move { client.wants_key(session_id, missing).await }),
        });
    }

    /// The time goes on that stood still while a person was asked.
    pub(super) fn person_is_done(&mut self) {
        if let Some(since) = self.asked_since.take()
            && let Some(deadline) = &mut self.deadline
        {
            let later = deadline.deadline() + since.elapsed();
            deadline.as_mut().reset(later);
        }
    }

    /// Calls the model, unless its price is needed and not known: another one may have been chosen since
    /// the prompt began.
    pub(super) fn start_model(&mut self, tools: bool) {
        match self.set_price() {
            Ok(()) => self.model = Some(self.call_model(tools)),
            Err(unknown) => self.feed(Input::ModelFailed(ModelFault {
                kind: FaultKind::BadRequest,
                message: unknown.to_string(),
                status: None,
                retry_after: None,
            })),
        }
    }

    /// Tells the loop what the tokens of its model cost now.
    fn set_price(&mut self) -> Result<(), UnknownPrice> {
        let limits = &self.scope.budget.limits;
        let price = self.task.price_within(limits, &**self.loop_model())?;
        if price != self.machine.spec().price {
            self.feed(Input::Price(price));
        }
        Ok(())
    }

    fn call_model(&self, tools: bool) -> RunningModel {
        let task = &*self.task;
        let model = self.loop_model();
        let trace = self.tracing(source::TURN, model)();
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
            temperature: task.settings.temperature,
            answer: self.machine.spec().limits.answer,
        };
        RunningModel::call(Arc::clone(model), request, trace)
    }

    /// What begins to trace a call.
    fn tracing(
        &self,
        source: &'static str,
        model: &Arc<dyn Model>,
    ) -> impl FnOnce() -> Trace + Send + use<> {
        let tracing = self.task.tracing.clone();
        let session_id = self.task.info.id.clone();
        let loop_id = self.machine.spec().loop_id.clone();
        let model = Arc::clone(model);
        move || {
            tracing.begin(Call {
                session_id,
                loop_id,
                source,
                model: &model.info().name,
            })
        }
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
            line_limits: LineLimits::default(),
            progress,
            cancel: CancellationToken::new(),
            trace: self.scope.trace.clone(),
            host: (call.name == subagent::NAME).then(|| self.parent()),
        };
        (cx, reports)
    }

    /// Time that the prompt has used up, by what the deadline leaves of it.
    pub(super) fn elapsed(&self) -> Duration {
        let asked = self.asked_since.map_or(Duration::ZERO, |it| it.elapsed());
        match &self.deadline {
            Some(at) => {
                let until = at.deadline().saturating_duration_since(Instant::now());
                let left = until.saturating_add(asked);
                self.scope.budget.limits.duration.saturating_sub(left)
            }
            None => self.machine.spending_of_prompt().time,
        }
    }

    /// What a sub-agent is lent. The hooks and the model of this one prompt hold for it too, and it draws
    /// on the prompt's budget.
    fn parent(&self) -> Arc<dyn Any + Send + Sync> {
        let task = &*self.task;
        Arc::new(Parent {
            store: Arc::clone(&task.store),
            models: Arc::clone(&task.models),
            toolbox: task.toolbox.clone(),
            workspace: Arc::clone(&task.workspace),
            client: Arc::clone(&task.ports.client),
            files: Arc::clone(&task.ports.files),
            terminals: task.ports.terminals.clone(),
            settings: Settings {
                hooks: self.scope.hooks.all(),
                forced_reply: self.scope.forced_reply,
                ..task.settings.clone()
            },
            model: Arc::clone(self.scope.model.as_ref().unwrap_or(&task.model)),
            policy: task.policy.clone(),
            options: task.options.subscribe(),
            tracing: task.tracing.clone(),
            shown_as: task.shown_as.clone(),
            session_id: task.info.id.clone(),
            loop_id: self.machine.spec().loop_id.clone(),
            depth: task.depth,
            budget: self.scope.budget.for_child(CHILD_TURNS, self.elapsed()),
        })
    }
}
