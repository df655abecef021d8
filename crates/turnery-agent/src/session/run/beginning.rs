//! Specifies a loop and predicts its first events, so that a prompt's claim can journal them.

use crate::{
    code_mode::Protocol,
    session::{
        SessionHistory, command::PromptKind, loop_plan::LoopPlan,
        pending_beginning::emitted_events, prompt_scope::PromptScope, task::SessionTask,
    },
};
use std::sync::Arc;
use turnery_engine::{ConfigSnapshot, Effect, Loop, LoopId, LoopSpec, TurnTrigger};
use turnery_store::LoopBeginning;

/// Builds the spec of a loop that continues from `history`.
pub(super) fn loop_spec(
    task: &SessionTask,
    scope: &PromptScope,
    history: &SessionHistory,
    plan: LoopPlan,
    loop_id: LoopId,
) -> LoopSpec {
    let model = scope.model_or(&task.env.model);
    let settings = &task.env.settings;
    let conversation = &task.conversation;
    let prefix = scope.request_prefix(task);
    let config = ConfigSnapshot {
        system_hash: Some(prefix.system_hash.clone()),
        // A candidate may have a system prompt of its own.
        system: (task.group.is_none() && conversation.system.is_unrecorded())
            .then(|| settings.system.to_string()),
        tools_hash: Some(prefix.tools_hash.clone()),
        protocol: match scope.protocol {
            Protocol::Tools => None,
            Protocol::Code => Some(scope.protocol.as_str().to_owned()),
        },
        ..model
            .info()
            .snapshot(scope.thinking_or(settings), scope.temperature_or(settings))
    };
    let spawned = scope.spawned_by.is_some() && plan.trigger == TurnTrigger::User;
    let spec = LoopSpec {
        agent_id: settings.agent_id.to_string(),
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
        parallel_group: plan.parallel_group,
        can_switch_frame: scope.may_switch,
        hooks: scope.hooks.hook_set(),
        steering: task.env.settings.steering,
        follow_ups: task.env.settings.follow_ups,
        forced_reply: scope.forced_reply,
        termination: scope.termination,
        max_parallel_calls: match faulty!(SequentialCalls) {
            true => 1,
            false => task.env.settings.parallel_tools.get(),
        },
        context: turnery_engine::ContextBudget {
            size: history.view.request_size(prefix.tokens),
            window: model.info().context_window.map(u64::from),
            compact_at: task.env.settings.compact_at,
        },
        price: task.env.price(&*model),
        notices: conversation.system.due_notices(&history.messages()),
        ..LoopSpec::for_prompt(
            conversation.info.id.clone(),
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
    kind: &PromptKind,
) -> Option<Arc<LoopBeginning>> {
    let PromptKind::Input(input) = kind else {
        return None;
    };
    if !scope.hooks.is_empty() {
        return None;
    }
    let plan = task.plan_input(input.clone());
    let loop_id = scope.clone().next_loop_id(task);
    let spec = loop_spec(
        task,
        scope,
        &task.conversation.history,
        plan,
        loop_id.clone(),
    );
    let mut effects = Vec::new();
    let _ = Loop::start(spec, turnery_store::now(), &mut effects);
    let calls_model = |effect: &Effect| matches!(effect, Effect::CallModel { .. });
    effects.iter().any(calls_model).then(|| {
        Arc::new(LoopBeginning {
            expected_head: task.conversation.info.head_version,
            loop_id,
            events: emitted_events(&effects).cloned().collect(),
        })
    })
}
