//! Runs one prompt from its claim to its result: one loop, plus one for each frame that a loop opens
//! (LASH-13).

use super::{
    PromptError, PromptOptions, PromptResult,
    budget::Budget,
    command::{EvaluationRequest, PromptKind, QueuedPrompt},
    loop_plan::LoopPlan,
    prompt_guard::PromptGuard,
    prompt_scope::PromptScope,
    queued_prompts::{remove_queued, start_queued},
    result::PromptEnd,
    run::{LoopRun, beginning::predict_beginning},
    task::SessionTask,
};
use crate::{
    cancels::Cancels,
    code_mode::Protocol,
    hooks::{HookCx, HookList},
    sink::SinkDriver,
    trace_sink::{PromptStart, PromptTrace},
};
use std::{sync::Arc, time::Duration};
use turnery_engine::{
    CommitError, Frame, FrameId, LlmMessage, LoopId, LoopRecord, Outcome, PromptId, ReachedLimit,
    TurnStop,
};
use turnery_store::{ClaimedLane, QueuedPrompt as StoredPrompt};
use turnery_tools::grace;

/// Maximum number of frames that one prompt may open (UP-31).
const MAX_FRAMES: usize = 16;

impl SessionTask {
    /// Runs a prompt, resolves its handle and queues its undelivered interjections.
    pub(crate) async fn serve_prompt(&mut self, prompt: QueuedPrompt) {
        let begins = prompt.try_begin();
        let QueuedPrompt {
            kind,
            evaluation,
            options,
            cancels,
            reply,
            inserted,
            slot: _,
            active_guard: open,
        } = prompt;
        if !begins {
            if let Some(reply) = reply {
                let _ = reply.send(Err(PromptError::Withdrawn));
            }
            return;
        }
        self.output.inserted = inserted;
        self.output.sinks = SinkDriver::new(options.sinks.clone(), cancels.clone());
        let result = self.run_prompt(kind, evaluation, &options, cancels).await;
        self.output.sinks = SinkDriver::default();
        self.output.inserted = None;
        for interjection in std::mem::take(&mut self.inbox.interjections)
            .into_iter()
            .rev()
        {
            if let Some(prompt) = interjection.into_prompt(options.clone()) {
                self.inbox.prompts.push_front(prompt);
            }
        }
        let is_refused_here = options.queued.is_some()
            && matches!(
                result,
                Err(PromptError::Busy { .. } | PromptError::AlreadyRun)
            );
        if !is_refused_here {
            self.show_prompt_end(&result).await;
        }
        if let Some(watch) = &mut self.queue_watch {
            watch.begin_after(&result, options.queued.is_some());
        }
        match (reply, result) {
            (Some(reply), result) => {
                let _ = reply.send(result);
            }
            (None, Err(error)) if is_refused_here => {
                tracing::debug!("a queued prompt was not run here: {error}");
            }
            (None, Err(error)) if options.queued.is_some() => {
                tracing::warn!("a queued prompt failed: {error}");
            }
            (None, Err(error)) => tracing::warn!("an undelivered message is lost: {error}"),
            (None, Ok(_)) => {}
        }
        // The prompt counts as open until its result is sent.
        drop(open);
    }

    async fn run_prompt(
        &mut self,
        kind: PromptKind,
        evaluation: Option<EvaluationRequest>,
        options: &PromptOptions,
        cancels: Cancels,
    ) -> PromptEnd {
        // In parallel with the claim.
        self.env.models.prefetch_keys();
        let name = options.model.as_ref();
        let model = name.map(|name| self.env.models.model(name)).transpose()?;
        let evaluation = evaluation
            .map(|request| self.resolve_evaluation(request, model.as_ref(), cancels.clone()));
        let evaluation = evaluation.transpose()?;
        let settings = &self.env.settings;
        let limits = options.limits.unwrap_or(settings.limits);
        let budget = match &self.env.budget {
            Some(shared) => shared.clone(),
            None => Budget::new(limits),
        };
        let own = model.as_ref().unwrap_or(&self.env.model);
        let called = match &evaluation {
            Some(evaluation) => evaluation.models(),
            None => vec![own],
        };
        if budget.limits.cost.is_some() {
            for model in called {
                self.env.price_for_limits(&budget.limits, &**model)?;
            }
        }
        let protocol = options.protocol.unwrap_or(settings.protocol);
        if protocol == Protocol::Code && !turnery_code::is_available() {
            return Err(PromptError::NoInterpreter);
        }
        let finish = options.finish.for_protocol(protocol);
        let hooks = settings.hooks.iter().chain(&options.hooks);
        let scope = PromptScope {
            prompt_id: match &options.queued {
                Some(queued) => queued.id.clone(),
                None => PromptId::from(turnery_store::new_uuid().to_string()),
            },
            model,
            takeover: Arc::default(),
            protocol,
            thinking: options.thinking,
            temperature: options.temperature,
            budget,
            forced_reply: options.forced_reply.unwrap_or(settings.forced_reply),
            termination: finish.termination(),
            prompt_tools: finish.tools(self.env.final_answer_format()),
            finish_rule: options.finish.clone(),
            takes_interjections: true,
            metadata: options.metadata.clone(),
            spawned_by: options.spawned_by.clone(),
            hooks: HookList::new(hooks, settings.hook_timeout),
            trace: options.trace.clone(),
            may_switch: true,
            last_loop_number: self.conversation.last_known_loop_number(),
        };
        let beginning = match (&evaluation, &options.queued) {
            (None, None) => predict_beginning(self, &scope, &kind),
            // The journal would count as a run of the queued prompt before it is known whether there was one.
            (Some(_), _) | (_, Some(_)) => None,
        };
        let mut guard = PromptGuard::new(self.conversation.info.id.clone(), cancels);
        let Some(opened) = self.claim(&mut guard, beginning).await? else {
            return Ok(PromptResult {
                is_stored: false,
                ..PromptResult::new(Outcome::Stopped(TurnStop::Cancelled))
            });
        };
        if let Some(queued) = &options.queued
            && let Err(error) = self.start_queued(&mut guard, queued).await
        {
            guard.release_lane(&self.env.store).await;
            return Err(error);
        }
        let trace = self.start_trace(&scope);
        let mut scope = PromptScope {
            last_loop_number: last_used_loop_number(&opened, self.conversation.last_lost_loop),
            ..scope
        };
        let planned = match self.resolve_prompt_kind(kind, &scope, &mut guard).await {
            Ok(kind) => self.plan_loop(kind).await,
            Err(error) => Err(error),
        };
        let end = match (planned, evaluation) {
            (Ok(plan), Some(evaluation)) => {
                Box::pin(self.run_evaluation(plan, evaluation, &mut scope, &mut guard)).await
            }
            (Ok(plan), None) => {
                let result = PromptResult::new(Outcome::Stopped(TurnStop::Cancelled));
                self.run_loops(plan, result, None, &mut scope, &mut guard)
                    .await
            }
            (Err(error), _) => Err(error),
        };
        if end.as_ref().map_or(true, |result| !result.is_stored) {
            self.conversation.last_lost_loop = scope.last_loop_number;
        }
        trace.end(end.as_ref().ok().map(|result| &result.outcome));
        if let (
            Some(queued),
            Ok(PromptResult {
                is_stored: true, ..
            }),
        ) = (&options.queued, &end)
        {
            let (store, id) = (&self.env.store, &self.conversation.info.id);
            let removed = remove_queued(Arc::clone(store), id.clone(), Arc::clone(queued));
            // If the store does not answer, the loop shows that the prompt was run.
            let _ = guard.wait_for_store(self, Box::pin(removed)).await;
        }
        guard.release_lane(&self.env.store).await;
        end.map(|result| PromptResult {
            turns: scope.budget.turns_taken(),
            ..result
        })
    }

    /// Starts a queued prompt that nobody has run.
    async fn start_queued(
        &mut self,
        guard: &mut PromptGuard,
        queued: &Arc<StoredPrompt>,
    ) -> Result<(), PromptError> {
        let (store, id) = (&self.env.store, &self.conversation.info.id);
        let started = start_queued(Arc::clone(store), id.clone(), Arc::clone(queued));
        match guard.wait_for_store(self, Box::pin(started)).await {
            Ok(started) => started,
            // The store has not answered; the prompt may have been started.
            Err(_) => Err(PromptError::Lost(CommitError::Store(
                "the store did not answer in time".to_owned(),
            ))),
        }
    }

    fn start_trace(&self, scope: &PromptScope) -> PromptTrace {
        let info = &self.conversation.info;
        self.env.tracer.start_prompt(&PromptStart {
            prompt_id: &scope.prompt_id,
            session_id: &info.id,
            agent_id: &self.env.settings.agent_id,
            model: &scope.model_or(&self.env.model).info().name,
            spawned_by: info.spawned_by.as_ref(),
            trace: &scope.trace,
        })
    }

    /// Runs a loop and the loops that follow from it. `result` holds the earlier ones, and `limit` the limit
    /// that one of them reached.
    pub(super) async fn run_loops(
        &mut self,
        mut plan: LoopPlan,
        mut result: PromptResult,
        limit: Option<ReachedLimit>,
        scope: &mut PromptScope,
        guard: &mut PromptGuard,
    ) -> PromptEnd {
        loop {
            let loop_id = scope.next_loop_id(self);
            if let Err(reason) = self.ask_before_loop(&plan, &loop_id, scope, guard).await? {
                return Ok(PromptResult {
                    usage: result.usage,
                    loops: result.loops,
                    ..refused_result(reason)
                });
            }
            scope.may_switch = result.loops.len() < MAX_FRAMES;
            let opened_by = loop_id.clone();
            let ended = LoopRun::begin(self, guard, scope, plan, loop_id);
            let ended = ended.run_to_end().await?;
            scope
                .budget
                .end_loop(ended.elapsed, ended.record.turns.len());
            result.outcome = ended.outcome.or_limit(|| limit.clone());
            result.usage += ended.usage;
            result.loops.push(Arc::clone(&ended.record));
            if !ended.is_stored {
                return Ok(unstored_result(result));
            }
            let messages = self.conversation.history.messages();
            self.notify_after_loop(ended.record, messages, scope, guard)
                .await;
            plan = match self.plan_next_frame(&result, opened_by) {
                Some(next) => next,
                None => return Ok(result),
            };
        }
    }

    /// Plans the first loop of the frame that the last loop has opened, if it has.
    pub(super) fn plan_next_frame(
        &self,
        result: &PromptResult,
        opened_by: LoopId,
    ) -> Option<LoopPlan> {
        let Outcome::FrameSwitch { frame_id, task } = &result.outcome else {
            return None;
        };
        if faulty!(EndAtFrameSwitch) {
            return None;
        }
        Some(LoopPlan::for_frame(Frame {
            frame_id: FrameId::from(frame_id.as_str()),
            parent_frame_id: self.conversation.frame_id.clone(),
            opened_by,
            task: task.clone(),
        }))
    }

    /// Asks the hooks before a loop begins (LOOP-55). A cancel is left to the loop, so that it is recorded.
    pub(super) async fn ask_before_loop(
        &mut self,
        plan: &LoopPlan,
        loop_id: &LoopId,
        scope: &PromptScope,
        guard: &mut PromptGuard,
    ) -> Result<Result<(), String>, PromptError> {
        if scope.hooks.is_empty() {
            return Ok(Ok(()));
        }
        let history = plan
            .base_history
            .as_ref()
            .unwrap_or(&self.conversation.history);
        let cx = self.hook_cx(loop_id, history.messages());
        let verdict = scope.hooks.clone().before_loop(cx, plan.input.clone());
        let verdict = guard.run_guarded(self, verdict, Duration::ZERO).await?;
        Ok(match verdict {
            Some(Err(_)) if faulty!(IgnoreBeforeLoopHook) => Ok(()),
            verdict => verdict.unwrap_or(Ok(())),
        })
    }

    /// Reports the end of a loop to the hooks (LOOP-56). Their errors are only logged.
    pub(super) async fn notify_after_loop(
        &mut self,
        record: Arc<LoopRecord>,
        messages: Arc<Vec<Arc<LlmMessage>>>,
        scope: &PromptScope,
        guard: &mut PromptGuard,
    ) {
        if scope.hooks.is_empty() {
            return;
        }
        let cx = self.hook_cx(&record.loop_id, messages);
        let reported = scope.hooks.clone().after_loop(cx, record);
        if let Ok(Some(issues)) = guard.run_guarded(self, reported, grace::CALL).await {
            for issue in issues {
                tracing::warn!("{issue}");
            }
        }
    }

    fn hook_cx(&self, loop_id: &LoopId, messages: Arc<Vec<Arc<LlmMessage>>>) -> HookCx {
        HookCx {
            session_id: self.conversation.info.id.clone(),
            loop_id: loop_id.clone(),
            messages,
        }
    }
}

/// Returns the last used loop number. Numbers that were shown are never reused, so they have gaps and cannot
/// be derived from a count.
fn last_used_loop_number(opened: &ClaimedLane, lost: u64) -> u64 {
    match faulty!(NumberLoopsByCount) {
        true => opened.info.head_version.max(lost),
        false => opened.last_number.max(lost),
    }
}

/// Builds the result of a prompt whose last loop is stored in the background. A frame that it opened was not
/// run.
pub(super) fn unstored_result(result: PromptResult) -> PromptResult {
    let outcome = match result.outcome {
        Outcome::FrameSwitch { .. } => Outcome::Stopped(TurnStop::Cancelled),
        outcome @ (Outcome::Finished(..) | Outcome::Stopped(_)) => outcome,
    };
    PromptResult {
        outcome,
        is_stored: false,
        ..result
    }
}

/// Builds the result of a prompt that a hook rejected.
pub(super) fn refused_result(reason: String) -> PromptResult {
    PromptResult::new(Outcome::Stopped(TurnStop::PluginAbort { reason }))
}
