//! Prompting: one prompt from its claim to its result: one loop, and one more for each frame that a
//! loop opens (LASH-13).

use super::{
    Budget, Prompt, PromptError, PromptOptions, PromptResult, Task,
    mail::{Tries, Work},
    plan::Plan,
    run::{Run, beginning::predict},
    task::PromptEnd,
    watch::{Attended, Watch},
};
use crate::{
    CancellationToken,
    hooks::{HookCx, HookList},
    sink::Tap,
};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use turnery_engine::{
    CommitFault, Detail, Frame, FrameId, LlmMessage, LoopId, LoopRecord, Outcome, PromptId,
    TurnStop,
};
use turnery_models::Model;
use turnery_store::Opened;
use turnery_tools::{TraceContext, grace};

/// How many frames one prompt may open (UP-31).
const FRAMES: usize = 16;

/// What holds for all loops of one prompt.
#[derive(Clone)]
pub(crate) struct Scope {
    pub(crate) prompt_id: PromptId,
    /// The model to use in place of the session's.
    pub(crate) model: Option<Arc<dyn Model>>,
    pub(crate) budget: Budget,
    pub(crate) forced_reply: bool,
    pub(crate) metadata: Option<Value>,
    pub(crate) spawned_by: Option<LoopId>,
    pub(crate) hooks: HookList,
    pub(crate) trace: TraceContext,
    /// Whether the next loop may open a frame; the prompt opens only so many.
    pub(crate) may_switch: bool,
    /// The greatest number that a loop of the session has had.
    number: u64,
}

impl Scope {
    /// The same, with another model.
    pub(super) fn with_model(&self, model: &Arc<dyn Model>) -> Self {
        Self {
            model: Some(Arc::clone(model)),
            ..self.clone()
        }
    }

    /// The id of the prompt's next loop (LOOP-10): its number is greater than that of any loop of the
    /// session before it, and so of any with the same configuration (LOOP-12).
    pub(super) fn next_loop(&mut self, task: &Task) -> LoopId {
        let model = self.model.as_ref().unwrap_or(&task.model);
        let segment = model.info().name.segment();
        self.number += 1;
        LoopId::numbered(&task.info.id, &segment, self.number)
    }
}

impl Task {
    /// Run a prompt, answer its ticket, and line up what was said too late for it.
    pub(crate) async fn prompt(&mut self, prompt: Prompt) {
        let begins = prompt.begins();
        let Prompt {
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
        self.tap = Tap::new(listener, (options.cancel.clone(), cancel_all.clone()));
        let result = self.run_prompt(work, tries, &options, cancel_all).await;
        self.tap = Tap::default();
        self.inserting = None;
        for word in std::mem::take(&mut self.words).into_iter().rev() {
            if let Some(prompt) = word.into_prompt(options.clone()) {
                self.waiting.push_front(prompt);
            }
        }
        self.show_end(&result).await;
        match (reply, result) {
            (Some(reply), result) => {
                let _ = reply.send(result);
            }
            (None, Err(error)) => tracing::warn!("what was said too late is lost: {error}"),
            (None, Ok(_)) => {}
        }
        // The prompt counts as open until its answer is on its way.
        drop(open);
    }

    async fn run_prompt(
        &mut self,
        work: Work,
        tries: Option<Tries>,
        options: &PromptOptions,
        cancel_all: CancellationToken,
    ) -> PromptEnd {
        // While the session is claimed.
        self.models.look_ahead();
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
            self.price_within(&budget.limits, &**model)?;
        }
        let hooks = settings.hooks.iter().chain(&options.hooks);
        let scope = Scope {
            prompt_id: PromptId::from(turnery_store::new_uuid().to_string()),
            model,
            budget,
            forced_reply: options.forced_reply.unwrap_or(settings.forced_reply),
            metadata: options.metadata.clone(),
            spawned_by: options.spawned_by.clone(),
            hooks: HookList::new(hooks, settings.hook_time),
            trace: options.trace.clone(),
            may_switch: true,
            number: self.known_number(),
        };
        let beginning = match contest {
            Some(_) => None,
            None => predict(self, &scope, &work),
        };
        let mut watch = Watch::new(self.info.id.clone(), options.cancel.clone(), cancel_all);
        let Some(opened) = self.claim(&mut watch, beginning).await? else {
            return Ok(PromptResult {
                is_stored: false,
                ..PromptResult::new(Outcome::Stopped(TurnStop::Cancelled), None)
            });
        };
        let mut scope = Scope {
            number: first_free(&opened, self.lost),
            ..scope
        };
        let planned = match self.with_servers(work, &scope, &mut watch).await {
            Ok(work) => self.plan(work).await,
            Err(error) => Err(error),
        };
        let end = match (planned, contest) {
            (Ok(plan), Some(contest)) => {
                Box::pin(self.evaluate(plan, contest, &mut scope, &mut watch)).await
            }
            (Ok(plan), None) => {
                let result = PromptResult::new(Outcome::Stopped(TurnStop::PluginAbort), None);
                self.loops_of(plan, result, &mut scope, &mut watch).await
            }
            (Err(error), _) => Err(error),
        };
        if end.as_ref().map_or(true, |result| !result.is_stored) {
            self.lost = scope.number;
        }
        watch.release(&self.store).await;
        end.map(|result| PromptResult {
            turns: scope.budget.turns(),
            ..result
        })
    }

    /// The greatest number of a loop that this handle knows of; there may be greater ones in the store.
    fn known_number(&self) -> u64 {
        let tip = self.info.tip_loop_id.as_ref();
        tip.and_then(LoopId::number)
            .unwrap_or_default()
            .max(self.lost)
    }

    /// Run a loop, and what follows from it; what was before is in the result already.
    pub(super) async fn loops_of(
        &mut self,
        mut plan: Plan,
        mut result: PromptResult,
        scope: &mut Scope,
        watch: &mut Watch,
    ) -> PromptEnd {
        loop {
            let loop_id = scope.next_loop(self);
            if let Err(reason) = self.may_begin(&plan, &loop_id, scope, watch).await? {
                return Ok(PromptResult {
                    usage: result.usage,
                    loops: result.loops,
                    ..refused(reason)
                });
            }
            scope.may_switch = result.loops.len() < FRAMES;
            let opened_by = loop_id.clone();
            let ended = Run::begin(self, watch, scope, plan, loop_id);
            let ended = ended.finish().await?;
            scope
                .budget
                .end_loop(ended.elapsed, ended.record.turns.len());
            result.outcome = ended.outcome;
            let earlier = match &result.outcome {
                Outcome::Finished(_) | Outcome::FrameSwitch { .. } => result.detail.take(),
                Outcome::Stopped(_) => None,
            };
            result.detail = ended.detail.or(earlier);
            result.usage += ended.usage;
            result.loops.push(Arc::clone(&ended.record));
            if !ended.is_stored {
                return Ok(not_stored(result));
            }
            let messages = self.history.messages();
            self.tell_of(ended.record, messages, scope, watch).await;
            plan = match self.next_frame(&result, opened_by) {
                Some(next) => next,
                None => return Ok(result),
            };
        }
    }

    /// The first loop of the frame that the last one has opened, if it has.
    pub(super) fn next_frame(&self, result: &PromptResult, opened_by: LoopId) -> Option<Plan> {
        let Outcome::FrameSwitch { frame_id, task } = &result.outcome else {
            return None;
        };
        if faulty!(StopAtFrameSwitch) {
            return None;
        }
        Some(Plan::frame(Frame {
            frame_id: FrameId::from(frame_id.as_str()),
            parent_frame_id: self.frame_id.clone(),
            opened_by,
            task: task.clone(),
        }))
    }

    /// Ask those who may say no before anything has begun (LOOP-55). A cancel is left to the loop, so
    /// that it is recorded.
    pub(super) async fn may_begin(
        &mut self,
        plan: &Plan,
        loop_id: &LoopId,
        scope: &Scope,
        watch: &mut Watch,
    ) -> Result<Result<(), String>, PromptError> {
        if scope.hooks.is_empty() {
            return Ok(Ok(()));
        }
        let history = plan.base.as_ref().unwrap_or(&self.history);
        let cx = self.hook_cx(loop_id, history.messages());
        let asked = scope.hooks.clone().before_loop(cx, plan.input.clone());
        match watch.attend(self, asked, Duration::ZERO).await {
            Attended::Done(Err(_)) if faulty!(BeforeLoopIsDeaf) => Ok(Ok(())),
            Attended::Done(answer) => Ok(answer),
            Attended::Cancelled => Ok(Ok(())),
            Attended::LaneLost => Err(PromptError::Lost(CommitFault::LaneLost)),
        }
    }

    /// Tell those who want to know that a loop is over (LOOP-56). Nothing comes of it any more.
    pub(super) async fn tell_of(
        &mut self,
        record: Arc<LoopRecord>,
        messages: Arc<Vec<Arc<LlmMessage>>>,
        scope: &Scope,
        watch: &mut Watch,
    ) {
        if scope.hooks.is_empty() {
            return;
        }
        let cx = self.hook_cx(&record.loop_id, messages);
        let told = scope.hooks.clone().after_loop(cx, record);
        if let Attended::Done(issues) = watch.attend(self, told, grace::CALL).await {
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

/// The number before that of the next loop. Numbers have gaps, since one that was shown is never used
/// again, so they are not counted.
fn first_free(opened: &Opened, lost: u64) -> u64 {
    match faulty!(CountLoops) {
        true => opened.info.head_version.max(lost),
        false => opened.last_number.max(lost),
    }
}

/// Result of a prompt whose last loop is stored in the background. A frame that it opened was not run.
pub(super) fn not_stored(result: PromptResult) -> PromptResult {
    let outcome = match result.outcome {
        Outcome::FrameSwitch { .. } => Outcome::Stopped(TurnStop::Cancelled),
        outcome @ (Outcome::Finished(_) | Outcome::Stopped(_)) => outcome,
    };
    PromptResult {
        outcome,
        is_stored: false,
        ..result
    }
}

/// What comes of a prompt that a hook did not let begin.
pub(super) fn refused(reason: String) -> PromptResult {
    let outcome = Outcome::Stopped(TurnStop::PluginAbort);
    PromptResult::new(outcome, Some(Detail::Runtime { message: reason }))
}
