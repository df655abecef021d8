//! Loop specs for the tests of this crate.

use crate::{ConfigSnapshot, Content, Limits, LoopSpec};

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
