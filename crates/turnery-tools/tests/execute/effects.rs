//! Tests of which effects of tools reach the host.

use super::{empty_scope, response_with_calls};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_engine::{ToolEnvelope, ToolError, ToolErrorKind};
use turnery_tools::{
    EffectKind, EffectMode, EffectPolicies, EffectPolicy, EmitLimits, ExecuteOptions, FunctionTool,
    Toolbox, execute, execute_tool, run_tools,
};

fn emit(kind: &str) -> Value {
    json!({"kind": "emit", "type": kind})
}

fn all_effects() -> Vec<Value> {
    vec![
        json!({"kind": "set_state", "state": {"n": 1}}),
        emit("order.placed"),
        json!({"kind": "spawn", "command": "rm"}),
        json!({"kind": "schedule", "delay_ms": 1000}),
        json!({"kind": "launch"}),
        emit("order.paid"),
    ]
}

/// Returns a tool with all kinds of effects, which fails if `fails` is true.
fn tool_with_effects(fails: bool) -> FunctionTool {
    FunctionTool::new("busy", "", move |_: Value, _| async move {
        let envelope = match fails {
            true => ToolEnvelope::from(ToolError {
                kind: ToolErrorKind::ExecutionError,
                message: "no".to_owned(),
                details: None,
            }),
            false => ToolEnvelope::json(json!("done")),
        };
        envelope.with_effects(all_effects())
    })
}

fn effect_kinds(effects: &[Value]) -> Vec<&str> {
    effects
        .iter()
        .filter_map(|effect| effect["kind"].as_str())
        .collect()
}

// proves: C-22, JIDO-44
#[tokio::test]
async fn without_a_policy_all_effects_pass() {
    let scope = empty_scope().with_tools(tool_with_effects(false).into());
    let done = execute("busy", json!({}), &scope, &ExecuteOptions::default()).await;
    assert_eq!(done.effects, all_effects());
}

// proves: JIDO-44, JIDO-45, JIDO-46, JIDO-76, JIDO-24
#[tokio::test]
async fn scope_policy_applies_to_every_entry_point() {
    let mut scope = empty_scope().with_tools(tool_with_effects(false).into());
    scope.effect_policy = Some(EffectPolicy::default());
    let options = ExecuteOptions::default();
    let by_name = execute("busy", json!({}), &scope, &options).await;
    let kept = ["set_state", "emit", "schedule", "emit"];
    assert_eq!(effect_kinds(&by_name.effects), kept);
    let failing = Arc::new(tool_with_effects(true));
    let by_reference = execute_tool(failing, json!({}), &scope, &options).await;
    assert!(by_reference.result.is_err());
    assert_eq!(effect_kinds(&by_reference.effects), kept);
    let response = response_with_calls(&[("c1", "busy", json!({}))]);
    let executed = run_tools(&response, &scope, &options).await;
    let effects = &executed.tool_results[0].raw_result().effects;
    assert_eq!(effect_kinds(effects), kept);
}

#[tokio::test]
async fn toolbox_policy_applies_too() {
    let tools =
        Toolbox::from(tool_with_effects(false)).with_effect_policy(EffectPolicy::allow_list([
            EffectKind::Emit,
            EffectKind::Spawn,
        ]));
    let mut scope = empty_scope().with_tools(tools);
    let options = ExecuteOptions::default();
    let done = execute("busy", json!({}), &scope, &options).await;
    assert_eq!(effect_kinds(&done.effects), ["emit", "spawn", "emit"]);
    scope.effect_policy = Some(EffectPolicy::default());
    let done = execute("busy", json!({}), &scope, &options).await;
    assert_eq!(effect_kinds(&done.effects), ["emit", "emit"]);
}

fn kept_kinds(policy: &EffectPolicy) -> Vec<String> {
    let mut effects = all_effects();
    effects.retain(|effect| policy.allows(effect));
    effect_kinds(&effects)
        .into_iter()
        .map(str::to_owned)
        .collect()
}

// proves: JIDO-45, JIDO-46, UP-22
#[test]
fn policy_modes_and_lists_filter_effects() {
    assert_eq!(kept_kinds(&EffectPolicy::deny_all()), [] as [&str; 0]);
    let allow_all = EffectPolicy::allow_all();
    // An unknown kind is never allowed.
    assert_eq!(
        kept_kinds(&allow_all),
        ["set_state", "emit", "spawn", "schedule", "emit"]
    );
    let deny = [EffectKind::Emit].into();
    let denying = EffectPolicy { deny, ..allow_all };
    assert_eq!(kept_kinds(&denying), ["set_state", "spawn", "schedule"]);
    let listed = EffectPolicy::allow_list([EffectKind::Emit, EffectKind::Spawn]);
    assert_eq!(kept_kinds(&listed), ["emit", "spawn", "emit"]);
    let deny = [EffectKind::Spawn].into();
    assert_eq!(
        kept_kinds(&EffectPolicy { deny, ..listed }),
        ["emit", "emit"]
    );
    assert!(!EffectPolicy::allow_all().allows(&json!("emit")));
    assert!(!EffectPolicy::allow_all().allows(&json!({"type": "emit"})));
}

fn policy_with_emit_limits(limits: Value) -> EffectPolicy {
    let emit: EmitLimits = serde_json::from_value(limits).expect("limits");
    EffectPolicy {
        emit,
        ..EffectPolicy::allow_all()
    }
}

// proves: UP-22
#[test]
fn emit_is_limited_by_type_prefix_and_dispatch() {
    let sent = |way: Value| json!({"kind": "emit", "type": "order.placed", "dispatch": way});
    for (limits, effect, is_allowed) in [
        (json!({}), emit("order.placed"), true),
        (
            json!({"types": ["order.placed"]}),
            emit("order.placed"),
            true,
        ),
        (
            json!({"types": ["order.placed"]}),
            emit("order.lost"),
            false,
        ),
        (
            json!({"types": ["order.placed"]}),
            json!({"kind": "emit"}),
            false,
        ),
        (json!({"types": []}), emit("order.placed"), false),
        (json!({"prefixes": ["order."]}), emit("order.placed"), true),
        (json!({"prefixes": ["order."]}), emit("user.born"), false),
        (json!({"prefixes": []}), emit("order.placed"), false),
        (
            json!({"prefixes": ["order."], "types": ["order.lost"]}),
            emit("order.placed"),
            false,
        ),
        (
            json!({"dispatches": ["pubsub"]}),
            sent(json!("pubsub")),
            true,
        ),
        (
            json!({"dispatches": ["pubsub"]}),
            sent(json!("http")),
            false,
        ),
        (
            json!({"dispatches": ["pubsub"]}),
            sent(json!(["pubsub", "http"])),
            false,
        ),
        (
            json!({"dispatches": ["pubsub"]}),
            sent(json!({"to": 1})),
            false,
        ),
        (json!({"dispatches": ["pubsub"]}), sent(json!([])), false),
        (
            json!({"dispatches": ["pubsub"]}),
            emit("order.placed"),
            false,
        ),
        (
            json!({"dispatches": ["default"]}),
            emit("order.placed"),
            true,
        ),
    ] {
        let policy = policy_with_emit_limits(limits.clone());
        assert_eq!(policy.allows(&effect), is_allowed, "{limits} {effect}");
    }
}

// proves: UP-22
#[test]
fn schedule_delay_is_limited() {
    let policy = EffectPolicy {
        max_delay_ms: Some(1000),
        ..EffectPolicy::allow_all()
    };
    let after = |delay: Value| json!({"kind": "schedule", "delay_ms": delay});
    assert!(policy.allows(&after(json!(1000))));
    assert!(!policy.allows(&after(json!(1001))));
    assert!(!policy.allows(&after(json!(-1))));
    assert!(!policy.allows(&after(json!("soon"))));
    assert!(EffectPolicy::allow_all().allows(&after(json!(1001))));
}

const KINDS: [EffectKind; 4] = [
    EffectKind::Emit,
    EffectKind::Schedule,
    EffectKind::Spawn,
    EffectKind::SetState,
];
const MODES: [EffectMode; 3] = [
    EffectMode::DenyAll,
    EffectMode::AllowAll,
    EffectMode::AllowList,
];

prop_compose! {
    fn any_policy()(
        mode in select(&MODES[..]),
        allow in vec(select(&KINDS[..]), 0..4),
        deny in vec(select(&KINDS[..]), 0..2),
        max_delay_ms in option::of(0_u64..2000),
    ) -> EffectPolicy {
        EffectPolicy {
            mode,
            allow: allow.into_iter().collect(),
            deny: deny.into_iter().collect(),
            emit: EmitLimits::default(),
            max_delay_ms,
        }
    }
}

proptest! {
    // proves: UP-22
    #[test]
    fn additional_policy_only_narrows(policies in vec(any_policy(), 0..4), more in any_policy()) {
        let before = policies
            .into_iter()
            .fold(EffectPolicies::default(), |all, policy| all.with_policy(policy));
        let after = before.with_policy(more.clone());
        for effect in all_effects() {
            let expected = before.allows(&effect) && more.allows(&effect);
            prop_assert_eq!(after.allows(&effect), expected);
        }
    }
}
