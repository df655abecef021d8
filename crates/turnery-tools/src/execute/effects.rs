//! Effects: what tools ask the host for besides their result, and which of that it will hear of.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc};

/// The sort of an effect: the word in its `kind`. A kind that is not here is never allowed (UP-22).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// Publish a signal: its `type`, and the way to `dispatch` it.
    Emit,
    /// Send a message later: after `delay_ms`.
    Schedule,
    /// Merge into the agent's state.
    SetState,
    /// Replace the agent's state.
    ReplaceState,
    /// Remove keys of the agent's state.
    DeleteKeys,
    /// Set one place of the agent's state.
    SetPath,
    /// Remove one place of the agent's state.
    DeletePath,
    /// Start a process.
    Spawn,
    /// Start an agent.
    SpawnAgent,
    /// Stop the agent.
    Stop,
    /// Stop an agent that this one started.
    StopChild,
    /// Run an instruction.
    RunInstruction,
    /// Run something again and again.
    Cron,
    /// Do so no longer.
    CronCancel,
}

use EffectKind::{DeleteKeys, DeletePath, Emit, ReplaceState, Schedule, SetPath, SetState};

impl EffectKind {
    fn of(effect: &Value) -> Option<Self> {
        Self::deserialize(effect.get("kind")?).ok()
    }
}

/// What a policy does with a kind that it does not deny.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectMode {
    /// Drop it.
    DenyAll,
    /// Keep it.
    AllowAll,
    /// Keep it if it is listed.
    AllowList,
}

/// Which effects are kept. By default those on the agent's own state, `emit` and `schedule`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EffectPolicy {
    /// What is done with kinds that are not denied.
    pub mode: EffectMode,
    /// Kinds that `allow_list` keeps.
    pub allow: BTreeSet<EffectKind>,
    /// Kinds that are dropped, whatever else is said.
    pub deny: BTreeSet<EffectKind>,
    /// What an `emit` must fit.
    pub emit: EmitLimits,
    /// How far ahead a `schedule` may lie; none is no limit. Unit: milliseconds.
    pub max_delay_ms: Option<u64>,
}

/// What an `emit` must fit. A list that is not given admits all, an empty one admits none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EmitLimits {
    /// Types of signals.
    pub types: Option<BTreeSet<String>>,
    /// What the type must begin with: one of these.
    pub prefixes: Option<Vec<String>>,
    /// Ways of dispatch; all that an effect names must be among them, and naming none is `default`.
    pub dispatches: Option<BTreeSet<String>>,
}

impl Default for EffectPolicy {
    fn default() -> Self {
        Self::allow_list([
            Emit,
            Schedule,
            SetState,
            ReplaceState,
            DeleteKeys,
            SetPath,
            DeletePath,
        ])
    }
}

impl EffectPolicy {
    /// Every effect is dropped.
    #[must_use]
    pub fn deny_all() -> Self {
        Self::of(EffectMode::DenyAll, BTreeSet::new())
    }

    /// Every effect of a known kind is kept.
    #[must_use]
    pub fn allow_all() -> Self {
        Self::of(EffectMode::AllowAll, BTreeSet::new())
    }

    /// Effects of these kinds are kept.
    #[must_use]
    pub fn allow_list(kinds: impl IntoIterator<Item = EffectKind>) -> Self {
        Self::of(EffectMode::AllowList, kinds.into_iter().collect())
    }

    fn of(mode: EffectMode, allow: BTreeSet<EffectKind>) -> Self {
        Self {
            mode,
            allow,
            deny: BTreeSet::new(),
            emit: EmitLimits::default(),
            max_delay_ms: None,
        }
    }

    /// Whether this effect is kept.
    #[must_use]
    pub fn allows(&self, effect: &Value) -> bool {
        let Some(kind) = EffectKind::of(effect) else {
            return false;
        };
        let is_in_mode = match self.mode {
            EffectMode::DenyAll => false,
            EffectMode::AllowAll => true,
            EffectMode::AllowList => self.allow.contains(&kind),
        };
        is_in_mode
            && !self.deny.contains(&kind)
            && match kind {
                Emit => self.emit.fit(effect),
                Schedule => self.is_soon(effect),
                SetState
                | ReplaceState
                | DeleteKeys
                | SetPath
                | DeletePath
                | EffectKind::Spawn
                | EffectKind::SpawnAgent
                | EffectKind::Stop
                | EffectKind::StopChild
                | EffectKind::RunInstruction
                | EffectKind::Cron
                | EffectKind::CronCancel => true,
            }
    }

    fn is_soon(&self, effect: &Value) -> bool {
        let delay = effect.get("delay_ms").and_then(Value::as_u64);
        self.max_delay_ms
            .is_none_or(|most| delay.is_some_and(|delay| delay <= most))
    }
}

impl EmitLimits {
    fn fit(&self, effect: &Value) -> bool {
        let kind = effect.get("type").and_then(Value::as_str);
        let is_type = |types: &BTreeSet<String>| kind.is_some_and(|kind| types.contains(kind));
        let begins = |prefixes: &Vec<String>| {
            kind.is_some_and(|kind| prefixes.iter().any(|prefix| kind.starts_with(prefix)))
        };
        let goes = |ways: &BTreeSet<String>| match effect.get("dispatch") {
            None | Some(Value::Null) => ways.contains("default"),
            Some(Value::Array(list)) if list.is_empty() => ways.contains("default"),
            Some(Value::String(way)) => ways.contains(way),
            Some(Value::Array(list)) => list
                .iter()
                .all(|way| way.as_str().is_some_and(|way| ways.contains(way))),
            Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => false,
        };
        self.types.as_ref().is_none_or(is_type)
            && self.prefixes.as_ref().is_none_or(begins)
            && self.dispatches.as_ref().is_none_or(goes)
    }
}

/// Policies that must all agree: with each one more, less is kept and never more. None at all keeps
/// everything (C-22).
#[derive(Clone, Debug, Default)]
pub struct EffectPolicies(Vec<Arc<EffectPolicy>>);

impl EffectPolicies {
    /// These and one more.
    #[must_use]
    pub fn and(&self, policy: EffectPolicy) -> Self {
        let mut policies = self.0.clone();
        policies.push(Arc::new(policy));
        Self(policies)
    }

    /// Whether this effect is kept.
    #[must_use]
    pub fn allow(&self, effect: &Value) -> bool {
        self.0.iter().all(|policy| policy.allows(effect))
    }
}
