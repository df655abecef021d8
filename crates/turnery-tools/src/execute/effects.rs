//! Effects that tools request from the host besides their result, and the policies that filter them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc};

/// Kind of an effect, as in its `kind` field. An unknown kind is never allowed (UP-22).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// Publishes a signal with a `type`, by the way named in `dispatch`.
    Emit,
    /// Sends a message after `delay_ms`.
    Schedule,
    /// Merges a value into the agent's state.
    SetState,
    /// Replaces the agent's state.
    ReplaceState,
    /// Removes keys of the agent's state.
    DeleteKeys,
    /// Sets one path of the agent's state.
    SetPath,
    /// Removes one path of the agent's state.
    DeletePath,
    /// Starts a process.
    Spawn,
    /// Starts an agent.
    SpawnAgent,
    /// Stops the agent.
    Stop,
    /// Stops an agent that this agent started.
    StopChild,
    /// Runs an instruction.
    RunInstruction,
    /// Adds a recurring job.
    Cron,
    /// Removes a recurring job.
    CronCancel,
}

use EffectKind::{DeleteKeys, DeletePath, Emit, ReplaceState, Schedule, SetPath, SetState};

impl EffectKind {
    fn from_effect(effect: &Value) -> Option<Self> {
        Self::deserialize(effect.get("kind")?).ok()
    }
}

/// Treatment of effects whose kind is not denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectMode {
    /// Drops every effect.
    DenyAll,
    /// Keeps every effect of a known kind, within the limits on `emit` and `schedule`.
    AllowAll,
    /// Keeps effects whose kind is listed.
    AllowList,
}

/// Decides which effects are kept. The default keeps those on the agent's own state, `emit` and `schedule`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EffectPolicy {
    /// Treatment of kinds that are not denied.
    pub mode: EffectMode,
    /// Kinds that `allow_list` keeps.
    pub allow: BTreeSet<EffectKind>,
    /// Kinds that are always dropped.
    pub deny: BTreeSet<EffectKind>,
    /// Restrictions on `emit`.
    pub emit: EmitLimits,
    /// Maximum delay of a `schedule`; `None` means no limit. Unit: milliseconds.
    pub max_delay_ms: Option<u64>,
}

/// Restrictions on `emit`. `None` allows everything, an empty list nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EmitLimits {
    /// Allowed signal types.
    pub types: Option<BTreeSet<String>>,
    /// Allowed prefixes of the signal type.
    pub prefixes: Option<Vec<String>>,
    /// Allowed ways of dispatch. All that an effect names must be in the set; an effect that names none uses
    /// `default`.
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
    /// Drops every effect.
    #[must_use]
    pub fn deny_all() -> Self {
        Self::from_mode(EffectMode::DenyAll, BTreeSet::new())
    }

    /// Keeps every effect of a known kind.
    #[must_use]
    pub fn allow_all() -> Self {
        Self::from_mode(EffectMode::AllowAll, BTreeSet::new())
    }

    /// Keeps effects of these kinds.
    #[must_use]
    pub fn allow_list(kinds: impl IntoIterator<Item = EffectKind>) -> Self {
        Self::from_mode(EffectMode::AllowList, kinds.into_iter().collect())
    }

    fn from_mode(mode: EffectMode, allow: BTreeSet<EffectKind>) -> Self {
        Self {
            mode,
            allow,
            deny: BTreeSet::new(),
            emit: EmitLimits::default(),
            max_delay_ms: None,
        }
    }

    /// Returns true if this effect is kept.
    #[must_use]
    pub fn allows(&self, effect: &Value) -> bool {
        let Some(kind) = EffectKind::from_effect(effect) else {
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
                Emit => self.emit.allows(effect),
                Schedule => self.is_within_max_delay(effect),
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

    fn is_within_max_delay(&self, effect: &Value) -> bool {
        let delay = effect.get("delay_ms").and_then(Value::as_u64);
        self.max_delay_ms
            .is_none_or(|most| delay.is_some_and(|delay| delay <= most))
    }
}

impl EmitLimits {
    fn allows(&self, effect: &Value) -> bool {
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

/// Policies that must all allow an effect; adding one never keeps more. Without any, everything is kept
/// (C-22).
#[derive(Clone, Debug, Default)]
pub struct EffectPolicies(Vec<Arc<EffectPolicy>>);

impl EffectPolicies {
    /// Returns these policies and `policy`.
    #[must_use]
    pub fn with_policy(&self, policy: EffectPolicy) -> Self {
        let mut policies = self.0.clone();
        policies.push(Arc::new(policy));
        Self(policies)
    }

    /// Returns true if every policy keeps this effect.
    #[must_use]
    pub fn allows(&self, effect: &Value) -> bool {
        self.0.iter().all(|policy| policy.allows(effect))
    }
}
