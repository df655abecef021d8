//! Runs one prompt from its claim to its result: one loop, plus one for each frame that a loop opens
//! (LASH-13).

use super::{
    Budget, PromptError, PromptOptions, PromptResult, QueuedPrompt, SessionTask,
    command::{PromptKind, TryRequest},
    loop_plan::LoopPlan,
    prompt_guard::{GuardOutcome, PromptGuard},
    run::{LoopRun, beginning::predict_beginning},
    task::PromptEnd,
};
use crate::{
    CancellationToken,
    hooks::{HookCx, HookList},
    sink::SinkDriver,
};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use turnery_engine::{
    CommitError, Frame, FrameId, LlmMessage, LoopId, LoopRecord, Outcome, PromptId, ReachedLimit,
    TurnStop,
};
use turnery_models::Model;
use turnery_store::ClaimedLane;
use turnery_tools::{TraceContext, grace};

/// Maximum number of frames that one prompt may open (UP-31).
const MAX_FRAMES: usize = 16;

/// Parameters shared by all loops of one prompt.
#[derive(Clone)]
pub(crate) struct PromptScope {
    pub(crate) prompt_id: PromptId,
    /// Model to use instead of the session's.
    pub(crate) model: Option<Arc<dyn Model>>,
    pub(crate) budget: Budget,
    pub(crate) forced_reply: bool,
    pub(crate) metadata: Option<Value>,
    pub(crate) spawned_by: Option<LoopId>,
    pub(crate) hooks: HookList,
    pub(crate) trace: TraceContext,
    /// True if the next loop may open a frame: their number is limited.
    pub(crate) may_switch: bool,
    /// Highest loop number used in the session.
    last_loop_number: u64,
}

impl PromptScope {
    /// Returns a copy with another model.
    pub(super) fn with_model(&self, model: &Arc<dyn Model>) -> Self {
        Self {
            model: Some(Arc::clone(model)),
            ..self.clone()
        }
    }

    /// Returns the id of the prompt's next loop (LOOP-10). Its number is greater than that of any earlier
    /// loop of the session, and so of any with the same configuration (LOOP-12).
    pub(super) fn next_loop_id(&mut self, task: &SessionTask) -> LoopId {
        let model = self.model.as_ref().unwrap_or(&task.model);
        let segment = model.info().name.loop_id_segment();
        self.last_loop_number += 1;
        LoopId::from_parts(&task.info.id, &segment, self.last_loop_number)
    }
}

impl SessionTask {
    /// Runs a prompt, resolves its handle and queues its undelivered interjections.
    pub(crate) async fn prompt(&mut self, prompt: QueuedPrompt) {
        let begins = prompt.try_begin();
        let QueuedPrompt {
            work,
            tries,
            options,
            cancel_all,
            listener,
            reply,
            inserted,
            place: _,
            open,
        } = prompt;
        if !begins {
            if let Some(reply) = reply {
                let _ = reply.send(Err(PromptError::Withdrawn));
            }
            return;
        }
        self.inserting = inserted;
        self.tap = SinkDriver::new(listener, (options.cancel.clone(), cancel_all.clone()));
        let result = self.run_prompt(work, tries, &options, cancel_all).await;
        self.tap = SinkDriver::default();
        self.inserting = None;
        for word in std::mem::take(&mut self.words).into_iter().rev() {
            if let Some(prompt) = word.into_prompt(options.clone()) {
                self.waiting.push_front(prompt);
            }
        }
        self.show_prompt_end(&result).await;
        match (reply, result) {
            (Some(reply), result) => {
                let _ = reply.send(result);
            }
            (None, Err(error)) => tracing::warn!("an undelivered message is lost: {error}"),
            (None, Ok(_)) => {}
        }
        // The prompt counts as open until its result is sent.
        drop(open);
    }

    async fn run_prompt(
        &mut self,
        work: PromptKind,
        tries: Option<TryRequest>,
        options: &PromptOptions,
        cancel_all: CancellationToken,
    ) -> PromptEnd {
        // In parallel with the claim.
        self.models.prefetch_keys();
        let name = options.model.as_ref();
        let model = name.map(|name| self.models.model(name)).transpose()?;
        let cancel = (options.cancel.clone(), cancel_all.clone());
        let contest = tries.map(|tries| self.contest(tries, model.as_ref(), cancel));
        let contest = contest.transpose()?;
        let settings = &self.settings;
        let limits = options.limits.unwrap_or(settings.limits);
        let budget = match &self.lent {
            Some(lent) => lent.clone(),
            None => Budget::new(limits),
        };
        let own = model.as_ref().unwrap_or(&self.model);
        let called = match &contest {
            Some(contest) => contest.models(),
            None => vec![own],
        };
        for model in called {
            self.price_for_limits(&budget.limits, &**model)?;
        }
        let hooks = settings.hooks.iter().chain(&options.hooks);
        let scope = PromptScope {
            prompt_id: PromptId::from(turnery_store::new_uuid().to_string()),
            model,
            budget,
            forced_reply: options.forced_reply.unwrap_or(settings.forced_reply),
            metadata: options.metadata.clone(),
            spawned_by: options.spawned_by.clone(),
            hooks: HookList::new(hooks, settings.hook_time),
            trace: options.trace.clone(),
            may_switch: true,
            last_loop_number: self.last_known_loop_number(),
        };
        let beginning = match contest {
            Some(_) => None,
            None => predict_beginning(self, &scope, &work),
        };
        let mut watch = PromptGuard::new(self.info.id.clone(), options.cancel.clone(), cancel_all);
        let Some(opened) = self.claim(&mut watch, beginning).await? else {
            return Ok(PromptResult {
                is_stored: false,
                ..PromptResult::new(Outcome::Stopped(TurnStop::Cancelled))
            });
        };
        let mut scope = PromptScope {
            last_loop_number: last_used_loop_number(&opened, self.lost),
            ..scope
        };
        let planned = match self.wait_for_servers(work, &scope, &mut watch).await {
            Ok(work) => self.plan(work).await,
            Err(error) => Err(error),
        };
        let end = match (planned, contest) {
            (Ok(plan), Some(contest)) => {
                Box::pin(self.evaluate(plan, contest, &mut scope, &mut watch)).await
            }
            (Ok(plan), None) => {
                let result = PromptResult::new(Outcome::Stopped(TurnStop::Cancelled));
                self.run_loops(plan, result, None, &mut scope, &mut watch)
                    .await
            }
            (Err(error), _) => Err(error),
        };
        if end.as_ref().map_or(true, |result| !result.is_stored) {
            self.lost = scope.last_loop_number;
        }
        watch.release_lane(&self.store).await;
        end.map(|result| PromptResult {
            turns: scope.budget.turns(),
            ..result
        })
    }

    /// Returns the highest loop number known to this handle; the store may have higher ones.
    fn last_known_loop_number(&self) -> u64 {
        let tip = self.info.tip_loop_id.as_ref();
        tip.and_then(LoopId::number)
            .unwrap_or_default()
            .max(self.lost)
    }

    /// Runs a loop and the loops that follow from it. `result` holds the earlier ones, and `limit` the limit
    /// that one of them reached.
    pub(super) async fn run_loops(
        &mut self,
        mut plan: LoopPlan,
        mut result: PromptResult,
        limit: Option<ReachedLimit>,
        scope: &mut PromptScope,
        watch: &mut PromptGuard,
    ) -> PromptEnd {
        loop {
            let loop_id = scope.next_loop_id(self);
            if let Err(reason) = self.ask_before_loop(&plan, &loop_id, scope, watch).await? {
                return Ok(PromptResult {
                    usage: result.usage,
                    loops: result.loops,
                    ..refused(reason)
                });
            }
            scope.may_switch = result.loops.len() < MAX_FRAMES;
            let opened_by = loop_id.clone();
            let ended = LoopRun::begin(self, watch, scope, plan, loop_id);
            let ended = ended.finish().await?;
            scope
                .budget
                .end_loop(ended.elapsed, ended.record.turns.len());
            result.outcome = ended.outcome.or_limit(|| limit.clone());
            result.usage += ended.usage;
            result.loops.push(Arc::clone(&ended.record));
            if !ended.is_stored {
                return Ok(unstored_result(result));
            }
            let messages = self.history.messages();
            self.notify_after_loop(ended.record, messages, scope, watch)
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
        if faulty!(StopAtFrameSwitch) {
            return None;
        }
        Some(LoopPlan::frame(Frame {
            frame_id: FrameId::from(frame_id.as_str()),
            parent_frame_id: self.frame_id.clone(),
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
        watch: &mut PromptGuard,
    ) -> Result<Result<(), String>, PromptError> {
        if scope.hooks.is_empty() {
            return Ok(Ok(()));
        }
        let history = plan.base.as_ref().unwrap_or(&self.history);
        let cx = self.hook_cx(loop_id, history.messages());
        let asked = scope.hooks.clone().before_loop(cx, plan.input.clone());
        match watch.run_guarded(self, asked, Duration::ZERO).await {
            GuardOutcome::Done(Err(_)) if faulty!(BeforeLoopIsDeaf) => Ok(Ok(())),
            GuardOutcome::Done(answer) => Ok(answer),
            GuardOutcome::Cancelled => Ok(Ok(())),
            GuardOutcome::LaneLost => Err(PromptError::Lost(CommitError::LaneLost)),
        }
    }

    /// Reports the end of a loop to the hooks (LOOP-56). Their errors are only logged.
    pub(super) async fn notify_after_loop(
        &mut self,
        record: Arc<LoopRecord>,
        messages: Arc<Vec<Arc<LlmMessage>>>,
        scope: &PromptScope,
        watch: &mut PromptGuard,
    ) {
        if scope.hooks.is_empty() {
            return;
        }
        let cx = self.hook_cx(&record.loop_id, messages);
        let told = scope.hooks.clone().after_loop(cx, record);
        if let GuardOutcome::Done(issues) = watch.run_guarded(self, told, grace::CALL).await {
            for issue in issues {
                tracing::warn!("{issue}");
            }
        }
    }

    fn hook_cx(&self, loop_id: &LoopId, messages: Arc<Vec<Arc<LlmMessage>>>) -> HookCx {
        HookCx {
            session_id: self.info.id.clone(),
            loop_id: loop_id.clone(),
            messages,
        }
    }
}

/// Returns the last used loop number. Numbers that were shown are never reused, so they have gaps and cannot
/// be derived from a count.
fn last_used_loop_number(opened: &ClaimedLane, lost: u64) -> u64 {
    match faulty!(CountLoops) {
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
pub(super) fn refused(reason: String) -> PromptResult {
    PromptResult::new(Outcome::Stopped(TurnStop::PluginAbort { reason }))
}

/// Returns the outcome of a record without one.
pub(super) fn missing_outcome() -> Outcome {
    let message = "the loop ended without an outcome; this is a bug in turnery".to_owned();
    Outcome::Stopped(TurnStop::RuntimeError { message })
}
