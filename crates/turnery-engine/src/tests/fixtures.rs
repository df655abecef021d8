//! Loop specs and stops for the tests of this crate.

use crate::{
    ConfigSnapshot, Content, LimitKind, Limits, LoopSpec, ProviderFailure, ReachedLimit, StopClass,
    TurnStop,
};
use serde_json::json;

/// Returns the spec of a new prompt `hello` with these limits.
pub(crate) fn spec_with_limits(limits: Limits) -> LoopSpec {
    let config = ConfigSnapshot {
        model: "snap-model".to_owned(),
        provider: "snap-provider".to_owned(),
        ..ConfigSnapshot::default()
    };
    let input = vec![Content::text("hello")];
    LoopSpec {
        agent_id: "agent".to_owned(),
        limits,
        ..LoopSpec::for_prompt("s".into(), "s.cfg.1".into(), "p1".into(), config, input)
    }
}

/// Returns the spec used by most tests.
pub(crate) fn prompt_spec() -> LoopSpec {
    spec_with_limits(Limits::default())
}

/// Returns the ten stops with their classes.
pub(crate) fn stops() -> [(TurnStop, StopClass); 10] {
    use TurnStop as S;
    let value = || json!({"why": "because"});
    let text = || "because".to_owned();
    let limit = || ReachedLimit {
        kind: LimitKind::Turns,
        text: text(),
    };
    [
        (S::Cancelled, StopClass::Host),
        (S::InvalidInput { reason: text() }, StopClass::Host),
        (S::Incomplete, StopClass::Provider),
        (
            S::ProviderError(ProviderFailure::Refused),
            StopClass::Provider,
        ),
        (S::MaxTurns(limit()), StopClass::Runtime),
        (S::ToolFailure { message: text() }, StopClass::Runtime),
        (S::PluginAbort { reason: text() }, StopClass::Runtime),
        (S::RuntimeError { message: text() }, StopClass::Fatal),
        (S::SubmittedError { value: value() }, StopClass::Rlm),
        (
            S::ToolError {
                tool_name: "t".to_owned(),
                value: value(),
            },
            StopClass::Rlm,
        ),
    ]
}
