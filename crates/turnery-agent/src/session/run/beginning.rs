//! Specifies a loop, and predicts its first events, so that a prompt's claim can journal them.

use crate::session::{History, mail::Work, plan::Plan, prompting::Scope, task::Task};
use std::sync::Arc;
use turnery_engine::{Effect, Event, Loop, LoopId, LoopSpec, SessionId, TurnTrigger};
use turnery_store::{LoopBeginning, Opened, Owner, Store, StoreError};

/// Builds what a loop starts with that goes on from `history`.
pub(super) fn specify(
    task: &Task,
    scope: &Scope,
    history: &History,
    plan: Plan,
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
        group: plan.group,
        may_switch: scope.may_switch,
        hooks: scope.hooks.set(),
        steering: task.settings.steering,
        follow_ups: task.settings.follow_ups,
        forced_reply: scope.forced_reply,
        parallel: match faulty!(OneCallAtATime) {
            true => 1,
            false => task.settings.parallel_tools.get(),
        },
        context: turnery_engine::Context {
            size,
            window: model.info().context_window.map(u64::from),
            compact_at: task.settings.compact_at,
        },
        price: task.price(&**model),
        ..LoopSpec::prompt(
            task.info.id.clone(),
            loop_id,
            scope.prompt_id.clone(),
            config,
            plan.input,
        )
    };
    scope.budget.specify(spec)
}

/// Predicts the first events of a prompt's first loop, as the session stands now. `None` if something
/// else than a call of the model follows them, or if a hook may refuse the prompt before it has begun (LOOP-55).
pub(crate) fn predict(task: &Task, scope: &Scope, work: &Work) -> Option<Arc<LoopBeginning>> {
    let Work::Say(input) = work else {
        return None;
    };
    if !scope.hooks.is_empty() {
        return None;
    }
    let plan = task.plan_input(input.clone());
    let loop_id = scope.clone().next_loop(task);
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

/// Compares all but the times.
fn are_same(event: &Event, predicted: &Event) -> bool {
    event.session_id == predicted.session_id
        && event.loop_id == predicted.loop_id
        && event.seq == predicted.seq
        && event.turn_index == predicted.turn_index
        && event.kind == predicted.kind
}

/// First events of a loop that a claim has journalled. Unless the loop begins, they are removed from the
/// journal when this is dropped: no later claim may take them for an interrupted prompt.
pub(crate) struct PendingBeginning {
    store: Arc<dyn Store>,
    session_id: SessionId,
    owner: Owner,
    beginning: Arc<LoopBeginning>,
    is_settled: bool,
}

impl PendingBeginning {
    /// Claims the session with these events. `None` beside the lane if they were not journalled.
    pub(crate) async fn claim(
        store: &Arc<dyn Store>,
        session_id: &SessionId,
        owner: &Owner,
        beginning: Arc<LoopBeginning>,
    ) -> Result<(Opened, Option<Self>), StoreError> {
        let mut pending = Self {
            store: Arc::clone(store),
            session_id: session_id.clone(),
            owner: owner.clone(),
            beginning: Arc::clone(&beginning),
            is_settled: false,
        };
        let claimed = store.claim_and_journal(session_id, owner, beginning).await;
        // A claim may have been made although its answer came too late.
        pending.is_settled = match &claimed {
            Ok(outcome) => !outcome.is_journalled,
            Err(StoreError::Broken(_)) => false,
            Err(_) => true,
        };
        let outcome = claimed?;
        Ok((outcome.opened, outcome.is_journalled.then_some(pending)))
    }

    /// Number of events that need not be journalled again, for a loop that begins with `effects`. A journal of
    /// the same loop that differs is replaced when it is written from its first event.
    pub(super) fn begin(mut self, loop_id: &LoopId, effects: &[Effect]) -> usize {
        self.is_settled = self.beginning.loop_id == *loop_id;
        let predicted = &self.beginning.events;
        let begins_so = events(effects).count() == predicted.len()
            && events(effects)
                .zip(predicted)
                .all(|(event, it)| are_same(event, it));
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
