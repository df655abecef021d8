//! Carries out the effects of a loop, queued or immediate.

use super::{LoopRun, work::KeyWait};
use crate::{
    code_mode::{CODE_TOOL, CodeModel, Protocol, RunCodeTool},
    compactor::Compaction,
    hooks::HookCx,
    session::{
        effect_queue::QueuedEffect,
        gate::{self, CallGate, GateDecision, GateResult, JudgedCall},
        output_limit,
        parent_session::{MAX_CHILD_TURNS, ParentSession},
        price::UnknownPriceError,
        running_call::{REPORT_QUEUE_CAPACITY, RunningModel, RunningTool},
    },
    trace_sink::{ModelCallContext, ModelCallTrace},
};
use std::{any::Any, sync::Arc, time::Duration};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use turnery_engine::{
    ContextSize, Effect, HookRequest, Input, ModelError, ModelErrorKind, ToolCall, ToolEnvelope,
    ToolErrorKind, Verdict, usage::source,
};
use turnery_models::{MissingKeyError, Model, ModelName, ModelRequest, ToolChoice};
use turnery_tools::{
    CommandLineLimits, NestedCalls, Origin, PreparedCall, Progress, ToolCaller, ToolCx, Toolbox,
};

impl LoopRun<'_> {
    pub(super) fn start_effect(&mut self, effect: QueuedEffect) {
        match effect {
            QueuedEffect::ShowEvent(_) | QueuedEffect::ShowInfo | QueuedEffect::Finish(_) => {}
            QueuedEffect::CallModel { tool_choice } => {
                self.task.refresh_tools();
                let model = self.loop_model();
                match self.task.env.models.require_key(&model.info().name) {
                    Ok(()) => self.start_model(tool_choice),
                    Err(missing) => self.request_key(missing, tool_choice),
                }
            }
            QueuedEffect::RunHook(hook) => self.ask_hooks(hook),
            QueuedEffect::Compact {
                before,
                has_overflowed,
            } => self.compact(before, has_overflowed),
            QueuedEffect::JudgeCall(call) => {
                self.task.env.update_policy();
                let (cx, ..) = self.tool_cx(&call);
                let toolbox = self
                    .task
                    .tools
                    .toolbox_for_call(&self.toolbox(), &call.name);
                self.work.gate = Some(CallGate::prepare(call, toolbox, cx));
            }
            QueuedEffect::RequestPermission(question) => {
                let client = Arc::clone(&self.task.env.client);
                let approvals = self.task.env.approvals.clone();
                let store = Arc::clone(&self.task.env.store);
                self.work.gate = Some(CallGate::request_permission(
                    question, client, approvals, store,
                ));
                self.clock.stop();
            }
            QueuedEffect::RunTool(call) => {
                self.task.env.update_policy();
                self.task.refresh_tools();
                let (mut cx, reports, nested_calls) = self.tool_cx(&call);
                cx.line_limits = self
                    .work
                    .line_limits
                    .remove(&call.call_id)
                    .unwrap_or_default();
                let toolbox = self.toolbox();
                let tool = RunningTool::start(toolbox, call, cx, reports, nested_calls);
                self.work.tools.push(tool);
            }
        }
    }

    fn ask_hooks(&mut self, hook: HookRequest) {
        let cx = HookCx {
            session_id: self.task.conversation.info.id.clone(),
            loop_id: self.machine.spec().loop_id.clone(),
            messages: self.task.conversation.history.messages(),
        };
        self.work.hook = Some(Box::pin(self.scope.hooks.clone().ask_hook(cx, hook)));
    }

    fn compact(&mut self, before: ContextSize, has_overflowed: bool) {
        if let Err(unknown) = self.set_price() {
            let block = Err(unknown.to_string());
            return self.feed(Input::Compacted {
                block,
                after: before,
                usage: None,
            });
        }
        let task = &*self.task;
        let model = self.loop_model();
        let compaction = Compaction {
            session_id: task.conversation.info.id.clone(),
            view: task.conversation.history.view.clone(),
            size_before: before,
            has_overflowed,
            overhead_tokens: self.scope.request_prefix(task).tokens,
            settings: task.env.settings.compaction,
        };
        let begin = self.call_tracer(source::COMPACTION, &model);
        let compacted = compaction.run_traced(model, begin);
        self.work.compaction = Some(Box::pin(compacted));
    }

    pub(super) fn handle_gate(&mut self, result: GateResult) {
        match result {
            GateResult::Prepared(call, Err(failure)) => self.feed(Input::ToolEnded {
                call_id: call.call_id,
                envelope: output_limit::limit_envelope(failure),
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
                self.task.env.update_policy();
                // The mode or a rule has changed meanwhile.
                if policy != self.task.env.policy {
                    return self.judge(call, prepared);
                }
                let detail = prepared.detail;
                let session_id = &self.task.conversation.info.id;
                let mut followed = gate::decide(judgement, session_id, &call, detail.clone());
                if self.work.is_rejected_sibling(&call) {
                    followed.reject_question();
                }
                let call_id = call.call_id;
                self.work.line_limits.insert(call_id.clone(), limits);
                match followed {
                    GateDecision::Settled(verdict) => {
                        self.feed(Input::Verdict { call_id, verdict })
                    }
                    GateDecision::Ask(question) => {
                        self.feed(Input::PermissionRequested { call_id, detail });
                        self.queue.push(QueuedEffect::RequestPermission(question));
                    }
                }
            }
            GateResult::Answered(question, answer) => {
                self.clock.resume();
                let verdict = gate::verdict_of_answer(&question, answer);
                if let (Verdict::Deny(_), Some(parent)) = (&verdict, question.parent_call_id) {
                    self.work.rejected_parents.insert(parent);
                }
                let call_id = question.request.call_id;
                self.feed(Input::Verdict { call_id, verdict });
            }
        }
    }

    fn judge(&mut self, call: ToolCall, prepared: PreparedCall) {
        self.task.env.update_policy();
        let (policy, workspace) = (
            self.task.env.policy.clone(),
            Arc::clone(&self.task.env.workspace),
        );
        self.work.gate = Some(CallGate::judge(call, prepared, policy, workspace));
    }

    /// Queues an effect, to be carried out once the client has taken the events before it. Stopping and
    /// committing never wait for a slow client (LASH-85).
    pub(super) fn dispatch_effect(&mut self, effect: Effect) {
        match effect {
            Effect::Emit(event) | Effect::Publish(event) => {
                let tracer = &self.task.env.tracer;
                tracer.trace_event(&self.scope.prompt_id, &event);
                self.queue.push(QueuedEffect::ShowEvent(event));
            }
            Effect::CallModel { tool_choice, .. } => {
                self.queue.push(QueuedEffect::CallModel { tool_choice });
            }
            Effect::Gate(call) => self.queue.push(QueuedEffect::JudgeCall(call)),
            Effect::RunTool(call) => self.queue.push(QueuedEffect::RunTool(call)),
            Effect::Finish(finish) => self.queue.push(QueuedEffect::Finish(finish)),
            Effect::RunHook(hook) => self.queue.push(QueuedEffect::RunHook(hook)),
            Effect::Compact {
                before,
                has_overflowed,
            } => self.queue.push(QueuedEffect::Compact {
                before,
                has_overflowed,
            }),
            Effect::StopModel if faulty!(KeepModelOnCancel) => {}
            Effect::CancelGate(_) if faulty!(KeepRequestOnCancel) => {}
            Effect::StopModel => {
                if self.work.key_wait.take().is_some() {
                    self.clock.resume();
                }
                self.work.model = None;
                self.queue.cancel_model_call();
            }
            Effect::CancelHook => {
                self.work.hook = None;
                self.queue.cancel_hook();
            }
            Effect::StopCompaction => {
                self.work.compaction = None;
                self.queue.cancel_compaction();
            }
            Effect::CancelGate(call_id) => {
                self.queue.cancel_gate(&call_id);
                self.work.gate.take_if(|gate| *gate.call_id() == call_id);
            }
            Effect::StopTool(call_id) => {
                if self.queue.cancel_tool_run(&call_id) {
                    let envelope =
                        ToolEnvelope::failed(ToolErrorKind::Cancelled, "cancelled before it began");
                    self.inputs
                        .push_back(Input::ToolEnded { call_id, envelope });
                } else if let Some(tool) =
                    self.work.tools.iter().find(|tool| tool.call_id == call_id)
                {
                    tool.cancel();
                }
            }
            Effect::ReturnResults { parent, results } => self.return_results(&parent, results),
            Effect::AbortTool(call_id) => {
                self.queue.cancel_tool_run(&call_id);
                self.work.tools.retain(|tool| tool.call_id != call_id);
            }
            Effect::StartGrace => self.clock.start_grace(),
            Effect::ReturnUndelivered(_) if faulty!(DropUndelivered) => {}
            Effect::ReturnUndelivered(content) => {
                let mut passed = self.interjections.iter();
                if let Some(place) = passed.position(|it| !it.is_delivered && it.content == content)
                {
                    let undelivered = self.interjections.remove(place);
                    self.task.inbox.interjections.push_back(undelivered);
                }
            }
            Effect::Commit(end) => self.start_commit(&end),
        }
    }

    fn loop_model(&self) -> Arc<dyn Model> {
        self.scope.model_or(&self.task.env.model)
    }

    /// Returns the loop's model with the fallbacks that the user configured. A candidate is tried as it is.
    fn loop_model_with_fallbacks(&self) -> Arc<dyn Model> {
        let model = self.loop_model();
        let is_cost_limited = self.scope.budget.limits.cost.is_some();
        match self.machine.spec().parallel_group.is_empty() {
            true => self.task.env.models.with_fallbacks(&model, is_cost_limited),
            false => model,
        }
    }

    /// Uses the model that has taken over for the rest of the prompt, and counts its tokens at its price.
    pub(super) fn take_over(&mut self, name: &ModelName) {
        let Ok(model) = self.task.env.models.model(name) else {
            return;
        };
        self.scope.take_over(model);
        let price = self.task.env.price(&*self.loop_model());
        if price != self.machine.spec().price {
            self.feed(Input::PriceChanged(price));
        }
    }

    /// Asks the user for the API key that the next call needs. The clock of the loop stops meanwhile.
    fn request_key(&mut self, missing: MissingKeyError, tool_choice: ToolChoice) {
        let client = Arc::clone(&self.task.env.client);
        let session_id = self.task.conversation.info.id.clone();
        self.clock.stop();
        self.work.key_wait = Some(KeyWait {
            tool_choice,
            settled: Box::pin(async move { client.request_key(session_id, missing).await }),
        });
    }

    /// Calls the model, unless its price is required and unknown: the model may have changed since the prompt
    /// began.
    pub(super) fn start_model(&mut self, tool_choice: ToolChoice) {
        match self.set_price() {
            Ok(()) => self.work.model = Some(self.call_model(tool_choice)),
            Err(unknown) => self.feed(Input::ModelFailed(ModelError::new(
                ModelErrorKind::BadRequest,
                unknown.to_string(),
            ))),
        }
    }

    /// Updates the token price of the loop's model.
    fn set_price(&mut self) -> Result<(), UnknownPriceError> {
        let limits = &self.scope.budget.limits;
        let price = self
            .task
            .env
            .price_for_limits(limits, &*self.loop_model())?;
        if price != self.machine.spec().price {
            self.feed(Input::PriceChanged(price));
        }
        Ok(())
    }

    fn call_model(&self, tool_choice: ToolChoice) -> RunningModel {
        let task = &*self.task;
        let model = self.loop_model_with_fallbacks();
        let trace = self.call_tracer(source::TURN, &model)();
        let request = ModelRequest {
            session_id: task.conversation.info.id.clone(),
            system: Arc::clone(&task.env.settings.system),
            messages: task.conversation.history.messages(),
            tools: self.toolbox().specs(),
            tool_choice,
            thinking: self.scope.thinking_or(&task.env.settings),
            temperature: self.scope.temperature_or(&task.env.settings),
            answer_limits: self.machine.spec().limits.response,
        };
        let model = match self.scope.protocol {
            Protocol::Tools => model,
            Protocol::Code => Arc::new(CodeModel::new(model)),
        };
        RunningModel::start(model, request, trace)
    }

    /// Returns the tools of the loop: the session's, those with which the prompt can finish, and in code mode
    /// the one that runs code.
    pub(super) fn toolbox(&self) -> Toolbox {
        let toolbox = self.scope.prompt_tools.add_to(&self.task.env.toolbox);
        match self.scope.protocol {
            Protocol::Tools => toolbox,
            Protocol::Code => {
                let toolbox = toolbox.without_tool(CODE_TOOL);
                let tools = toolbox.specs();
                toolbox.with_tool(RunCodeTool {
                    tools,
                    variables: self.task.conversation.history.variables.clone(),
                    interpreter: Arc::clone(&self.task.interpreter),
                })
            }
        }
    }

    /// Returns a function that starts to trace a call.
    fn call_tracer(
        &self,
        source: &'static str,
        model: &Arc<dyn Model>,
    ) -> impl FnOnce() -> ModelCallTrace + Send + use<> {
        let tracer = self.task.env.tracer.clone();
        let session_id = self.task.conversation.info.id.clone();
        let prompt_id = self.scope.prompt_id.clone();
        let loop_id = self.machine.spec().loop_id.clone();
        let model = Arc::clone(model);
        move || {
            tracer.begin_call(ModelCallContext {
                session_id,
                prompt_id,
                loop_id,
                source,
                model: &model.info().name,
            })
        }
    }

    fn tool_cx(
        &self,
        call: &ToolCall,
    ) -> (
        ToolCx,
        mpsc::Receiver<Progress>,
        mpsc::Receiver<NestedCalls>,
    ) {
        let (progress, reports) = mpsc::channel(REPORT_QUEUE_CAPACITY);
        let (caller, nested_calls) = ToolCaller::new();
        let spec = self.machine.spec();
        let toolbox = self.toolbox();
        let tool = toolbox.get(&call.name);
        let cx = ToolCx {
            call_id: call.call_id.clone(),
            origin: Origin {
                run_id: Some(spec.loop_id.clone()),
                agent_id: Some(spec.agent_id.as_str().into()),
                thread_id: Some(spec.session_id.clone()),
                iteration: self.machine.turn_index(),
            },
            workspace: Arc::clone(&self.task.env.workspace),
            hidden: self.task.env.policy.hidden_files_for(&call.name),
            line_limits: CommandLineLimits::default(),
            progress,
            cancel: CancellationToken::new(),
            trace: self.scope.trace.clone(),
            caller: Some(caller),
            host: tool
                .is_some_and(|tool| tool.uses_session())
                .then(|| self.parent_session()),
        };
        (cx, reports, nested_calls)
    }

    /// Returns the time the prompt has used, derived from its deadline.
    pub(super) fn elapsed(&self) -> Duration {
        let limit = self.scope.budget.limits.duration;
        let elapsed = self.clock.elapsed(limit);
        elapsed.unwrap_or_else(|| self.machine.prompt_spending().time)
    }

    /// Describes this session to a sub-agent, which uses the hooks, model and budget of this prompt.
    fn parent_session(&self) -> Arc<dyn Any + Send + Sync> {
        let mut env = self.task.env.clone();
        env.settings.system = Arc::clone(self.task.conversation.system.configured());
        env.settings.hooks = self.scope.hooks.to_vec();
        env.settings.forced_reply = self.scope.forced_reply;
        env.settings.protocol = self.scope.protocol;
        env.settings.thinking = self.scope.thinking_or(&env.settings);
        env.settings.temperature = self.scope.temperature_or(&env.settings);
        env.model = self.loop_model();
        let budget = &self.scope.budget;
        env.budget = Some(budget.for_child(MAX_CHILD_TURNS, self.elapsed()));
        Arc::new(ParentSession {
            env,
            options: self.task.options.subscribe(),
            session_id: self.task.conversation.info.id.clone(),
            loop_id: self.machine.spec().loop_id.clone(),
        })
    }
}
