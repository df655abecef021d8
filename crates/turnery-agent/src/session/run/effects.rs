//! Carries out the effects of a loop, queued or immediate.

use super::{KeyWait, LoopRun};
use crate::{
    CancellationToken, Compaction, Settings, UnknownPriceError,
    hooks::HookCx,
    session::{
        effect_queue::{ImmediateEffect, QueuedEffect},
        gate::{self, CallGate, GateDecision, GateResult, JudgedCall},
        output_limit,
        running_call::{REPORT_QUEUE_CAPACITY, RunningModel, RunningTool},
    },
    sub_agent::{self, MAX_CHILD_TURNS, ParentSession},
    trace_sink::{ModelCallContext, ModelCallTrace},
};
use std::{any::Any, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use turnery_engine::{
    ContextSize, HookRequest, Input, ModelError, ModelErrorKind, ToolCall, ToolEnvelope,
    ToolErrorKind, usage::source,
};
use turnery_models::{MissingKeyError, Model, ModelRequest};
use turnery_tools::{LineLimits, Origin, PreparedCall, Progress, ToolCx, grace};

impl LoopRun<'_> {
    pub(super) fn step(&mut self, step: QueuedEffect) {
        match step {
            QueuedEffect::Show(_) | QueuedEffect::Info | QueuedEffect::Finish(_) => {}
            QueuedEffect::CallModel { tools } => {
                self.task.refresh_tools();
                let name = &self.loop_model().info().name;
                match self.task.models.require_key(name) {
                    Ok(()) => self.start_model(tools),
                    Err(missing) => self.request_key(missing, tools),
                }
            }
            QueuedEffect::Hook(hook) => self.ask_hooks(hook),
            QueuedEffect::Compact(before) => self.compact(before),
            QueuedEffect::Gate(call) => {
                self.task.shown_as.apply_to(&mut self.task.policy);
                let (cx, _) = self.tool_cx(&call);
                let toolbox = self
                    .task
                    .tools
                    .toolbox_for_call(&self.task.toolbox, &call.name);
                self.gate = Some(CallGate::prepare(call, toolbox, cx));
            }
            QueuedEffect::Ask(question) => {
                let client = Arc::clone(&self.task.ports.client);
                let (known, store) = (self.task.shown_as.clone(), Arc::clone(&self.task.store));
                self.gate = Some(CallGate::ask(question, client, known, store));
                self.asked_since = Some(Instant::now());
            }
            QueuedEffect::Run(call) => {
                self.task.shown_as.apply_to(&mut self.task.policy);
                self.task.refresh_tools();
                let (mut cx, reports) = self.tool_cx(&call);
                cx.line_limits = self.line_limits.remove(&call.call_id).unwrap_or_default();
                let toolbox = self.task.toolbox.clone();
                let tool = RunningTool::run(toolbox, call, cx, reports);
                self.tools.push(tool);
            }
        }
    }

    fn ask_hooks(&mut self, hook: HookRequest) {
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
        let compacted = compaction.run_traced(Arc::clone(model), begin);
        self.compacting = Some(Box::pin(compacted));
    }

    pub(super) fn found(&mut self, found: GateResult) {
        match found {
            GateResult::Prepared(call, Err(failure)) => self.feed(Input::ToolEnded {
                call_id: call.call_id,
                envelope: output_limit::bounded(failure),
            }),
            GateResult::Prepared(call, Ok(prepared)) => self.judge(call, prepared),
            GateResult::Judged(judged) => {
                let JudgedCall {
                    call,
                    prepared,
                    policy,
                    judgement,
                    limits,
                } = *judged;
                self.task.shown_as.apply_to(&mut self.task.policy);
                // The mode or a rule has changed meanwhile.
                if policy != self.task.policy {
                    return self.judge(call, prepared);
                }
                let detail = prepared.detail;
                let followed = gate::decide(judgement, &self.task.info.id, &call, detail.clone());
                let call_id = call.call_id;
                self.line_limits.insert(call_id.clone(), limits);
                match followed {
                    GateDecision::Settled(verdict) => {
                        self.feed(Input::Verdict { call_id, verdict })
                    }
                    GateDecision::Ask(question) => {
                        self.feed(Input::PermissionRequested { call_id, detail });
                        self.steps.push(QueuedEffect::Ask(question));
                    }
                }
            }
            GateResult::Answered(question, answer) => {
                self.resume_clock();
                let verdict = gate::verdict_of_answer(&question, answer);
                let call_id = question.ask.call_id;
                self.feed(Input::Verdict { call_id, verdict });
            }
        }
    }

    fn judge(&mut self, call: ToolCall, prepared: PreparedCall) {
        self.task.shown_as.apply_to(&mut self.task.policy);
        let (policy, workspace) = (self.task.policy.clone(), Arc::clone(&self.task.workspace));
        self.gate = Some(CallGate::judge(call, prepared, policy, workspace));
    }

    pub(super) fn urgent(&mut self, urgent: ImmediateEffect) {
        match urgent {
            ImmediateEffect::StopModel if faulty!(LeaveModelRunning) => {}
            ImmediateEffect::Withdraw(_) if faulty!(LeaveQuestionOpen) => {}
            ImmediateEffect::StopModel => {
                if self.keying.take().is_some() {
                    self.resume_clock();
                }
                self.model = None;
                self.steps.cancel_model_call();
            }
            ImmediateEffect::StopHook => {
                self.hook = None;
                self.steps.cancel_hook();
            }
            ImmediateEffect::StopCompaction => {
                self.compacting = None;
                self.steps.cancel_compaction();
            }
            ImmediateEffect::Withdraw(call_id) => {
                self.steps.cancel_gate(&call_id);
                if self
                    .gate
                    .as_ref()
                    .is_some_and(|gate| *gate.call_id() == call_id)
                {
                    self.gate = None;
                }
            }
            ImmediateEffect::StopTool(call_id) => {
                if self.steps.cancel_tool_run(&call_id) {
                    let envelope =
                        ToolEnvelope::failed(ToolErrorKind::Cancelled, "cancelled before it began");
                    self.inputs
                        .push_back(Input::ToolEnded { call_id, envelope });
                } else if let Some(tool) = self.tools.iter().find(|tool| tool.call_id == call_id) {
                    tool.stop();
                }
            }
            ImmediateEffect::AbortTool(call_id) => {
                self.steps.cancel_tool_run(&call_id);
                self.tools.retain(|tool| tool.call_id != call_id);
            }
            ImmediateEffect::StartGrace => {
                self.grace = Some(Box::pin(sleep_until(Instant::now() + grace::CALL)));
            }
            ImmediateEffect::Unheard(_) if faulty!(ForgetUnheardWords) => {}
            ImmediateEffect::Unheard(words) => {
                let place = self
                    .told
                    .iter()
                    .position(|word| !word.is_heard && word.content == words);
                self.task
                    .words
                    .extend(place.map(|place| self.told.remove(place)));
            }
            ImmediateEffect::Commit(_) => {}
        }
    }

    /// Returns the model of this loop.
    fn loop_model(&self) -> &Arc<dyn Model> {
        self.scope.model.as_ref().unwrap_or(&self.task.model)
    }

    /// Asks the user for the API key that the next call needs. The clock of the loop stops meanwhile.
    fn request_key(&mut self, missing: MissingKeyError, tools: bool) {
        let client = Arc::clone(&self.task.ports.client);
        let session_id = self.task.info.id.clone();
        self.asked_since = Some(Instant::now());
        self.keying = Some(KeyWait {
            tools,
            settled: Box::pin(async move { client.wants_key(session_id, missing).await }),
        });
    }

    /// Resumes the clock that was stopped while the user was asked.
    pub(super) fn resume_clock(&mut self) {
        if let Some(since) = self.asked_since.take()
            && let Some(deadline) = &mut self.deadline
        {
            let later = deadline.deadline() + since.elapsed();
            deadline.as_mut().reset(later);
        }
    }

    /// Calls the model, unless its price is required and unknown: the model may have changed since the prompt
    /// began.
    pub(super) fn start_model(&mut self, tools: bool) {
        match self.set_price() {
            Ok(()) => self.model = Some(self.call_model(tools)),
            Err(unknown) => self.feed(Input::ModelFailed(ModelError {
                kind: ModelErrorKind::BadRequest,
                message: unknown.to_string(),
                status: None,
                retry_after: None,
            })),
        }
    }

    /// Updates the token price of the loop's model.
    fn set_price(&mut self) -> Result<(), UnknownPriceError> {
        let limits = &self.scope.budget.limits;
        let price = self.task.price_for_limits(limits, &**self.loop_model())?;
        if price != self.machine.spec().price {
            self.feed(Input::PriceChanged(price));
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
            answer: self.machine.spec().limits.response,
        };
        RunningModel::call(Arc::clone(model), request, trace)
    }

    /// Returns a function that starts to trace a call.
    fn tracing(
        &self,
        source: &'static str,
        model: &Arc<dyn Model>,
    ) -> impl FnOnce() -> ModelCallTrace + Send + use<> {
        let tracing = self.task.tracing.clone();
        let session_id = self.task.info.id.clone();
        let loop_id = self.machine.spec().loop_id.clone();
        let model = Arc::clone(model);
        move || {
            tracing.begin(ModelCallContext {
                session_id,
                loop_id,
                source,
                model: &model.info().name,
            })
        }
    }

    fn tool_cx(&self, call: &ToolCall) -> (ToolCx, mpsc::Receiver<Progress>) {
        let (progress, reports) = mpsc::channel(REPORT_QUEUE_CAPACITY);
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
            hidden: self.task.policy.hidden_files_for(&call.name),
            line_limits: LineLimits::default(),
            progress,
            cancel: CancellationToken::new(),
            trace: self.scope.trace.clone(),
            host: (call.name == sub_agent::TOOL_NAME).then(|| self.parent()),
        };
        (cx, reports)
    }

    /// Returns the time the prompt has used, derived from its deadline.
    pub(super) fn elapsed(&self) -> Duration {
        let asked = self.asked_since.map_or(Duration::ZERO, |it| it.elapsed());
        match &self.deadline {
            Some(at) => {
                let until = at.deadline().saturating_duration_since(Instant::now());
                let left = until.saturating_add(asked);
                self.scope.budget.limits.duration.saturating_sub(left)
            }
            None => self.machine.prompt_spending().time,
        }
    }

    /// Collects the parts shared with a sub-agent. It uses the hooks, model and budget of this prompt.
    fn parent(&self) -> Arc<dyn Any + Send + Sync> {
        let task = &*self.task;
        Arc::new(ParentSession {
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
            budget: self.scope.budget.for_child(MAX_CHILD_TURNS, self.elapsed()),
        })
    }
}
