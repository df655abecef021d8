//! Specifies a loop and predicts its first events, so that a prompt's claim can journal them.

use crate::session::{
    SessionHistory, command::PromptKind, loop_plan::LoopPlan, prompt_run::PromptScope,
    task::SessionTask,
};
use std::sync::Arc;
use turnery_engine::{Effect, Event, Loop, LoopId, LoopSpec, SessionId, TurnTrigger};
use turnery_store::{ClaimedLane, LoopBeginning, Owner, Store, StoreError};

/// Builds the spec of a loop that continues from `history`.
pub(super) fn specify(
    task: &SessionTask,
    scope: &PromptScope,
    history: &SessionHistory,
    plan: LoopPlan,
    loop_id: LoopId,
) -> LoopSpec {
    let model = scope.model.as_ref().unwrap_or(&task.model);
    let config = model
        .info()
        .snapshot(task.settings.thinking, task.settings.temperature);
    let mut size = history.view.size();
    size.tokens += task.overhead;
    let spawned = scope.spawned_by.is_some() && plan.trigger == TurnTrigger::User;
    let spec = LoopSpec {
        parent_loop_id: plan.parent.or_else(|| scope.spawned_by.clone()),
        continuation_kind: plan.kind,
        trigger: if spawned {
            TurnTrigger::SubAgent
        } else {
            plan.trigger
        },
        tag: plan.tag,
        metadata: scope.metadata.clone(),
        frame_id: plan.frame_id,
        frame: plan.frame,
        parallel_group: plan.group,
        can_switch_frame: scope.may_switch,
        hooks: scope.hooks.set(),
        steering: task.settings.steering,
        follow_ups: task.settings.follow_ups,
        forced_reply: scope.forced_reply,
        max_parallel_calls: match faulty!(OneCallAtATime) {
            true => 1,
            false => task.settings.parallel_tools.get(),
        },
        context: turnery_engine::ContextBudget {
            size,
            window: model.info().context_window.map(u64::from),
            compact_at: task.settings.compact_at,
        },
        price: task.price(&**model),
        ..LoopSpec::for_prompt(
            task.info.id.clone(),
            loop_id,
            scope.prompt_id.clone(),
            config,
            plan.input,
        )
    };
    scope.budget.apply_to_spec(spec)
}

/// Predicts the first events of a prompt's first loop from the current session state. `None` if anything but
/// a model call follows them, or if a hook may reject the prompt before it begins (LOOP-55).
pub(crate) fn predict_beginning(
    task: &SessionTask,
    scope: &PromptScope,
    work: &PromptKind,
) -> Option<Arc<LoopBeginning>> {
    let PromptKind::Say(input) = work else {
        return None;
    };
    if !scope.hooks.is_empty() {
        return None;
    }
    let plan = task.plan_input(input.clone());
    let loop_id = scope.clone().next_loop_id(task);
    let spec = specify(task, scope, &task.history, plan, loop_id.clone());
    let mut effects = Vec::new();
    let _ = Loop::start(spec, turnery_store::now(), &mut effects);
    let calls_model = |effect: &Effect| matches!(effect, Effect::CallModel { .. });
    effects.iter().any(calls_model).then(|| {
        Arc::new(LoopBeginning {
            expected_head: task.info.head_version,
            loop_id,
            events: events(&effects).cloned().collect(),
        })
    })
}

fn events(effects: &[Effect]) -> impl Iterator<Item = &Event> {
    effects.iter().filter_map(|effect| {
        if let Effect::Emit(event) = effect {
            return Some(event);
        }
        None
    })
}

/// Compares everything except timestamps.
fn is_same_event(event: &Event, predicted: &Event) -> bool {
    event.session_id == predicted.session_id
        && event.loop_id == predicted.loop_id
        && event.seq == predicted.seq
        && event.turn_index == predicted.turn_index
        && event.kind == predicted.kind
}

/// First events of a loop, journalled by a claim. Unless the loop begins, dropping this removes them from the
/// journal, so that no later claim takes them for an interrupted prompt.
pub(crate) struct PendingBeginning {
    store: Arc<dyn Store>,
    session_id: SessionId,
    owner: Owner,
    beginning: Arc<LoopBeginning>,
    is_settled: bool,
}

impl PendingBeginning {
    /// Claims the session and journals these events. The second value is `None` if they were not journalled.
    pub(crate) async fn claim(
        store: &Arc<dyn Store>,
        session_id: &SessionId,
        owner: &Owner,
        beginning: Arc<LoopBeginning>,
    ) -> Result<(ClaimedLane, Option<Self>), StoreError> {
        let mut pending = Self {
            store: Arc::clone(store),
            session_id: session_id.clone(),
            owner: owner.clone(),
            beginning: Arc::clone(&beginning),
            is_settled: false,
        };
        let claimed = store.claim_and_journal(session_id, owner, beginning).await;
        // The claim may have succeeded even if its reply came too late.
        pending.is_settled = match &claimed {
            Ok(outcome) => !outcome.is_journalled,
            Err(StoreError::Broken(_)) => false,
            Err(_) => true,
        };
        let outcome = claimed?;
        Ok((outcome.opened, outcome.is_journalled.then_some(pending)))
    }

    /// Returns the number of events already journalled for a loop that begins with `effects`. A differing
    /// journal of the same loop is replaced when the loop is journalled from its first event.
    pub(super) fn confirm(mut self, loop_id: &LoopId, effects: &[Effect]) -> usize {
        self.is_settled = self.beginning.loop_id == *loop_id;
        let predicted = &self.beginning.events;
        let begins_so = events(effects).count() == predicted.len()
            && events(effects)
                .zip(predicted)
                .all(|(event, it)| is_same_event(event, it));
        match self.is_settled && begins_so {
            true => predicted.len(),
            false => 0,
        }
    }
}

impl Drop for PendingBeginning {
    fn drop(&mut self) {
        if !self.is_settled {
            let loop_id = &self.beginning.loop_id;
            self.store
                .forget_journal(&self.session_id, &self.owner, loop_id);
        }
    }
}
