//! Fixture: what the tests of this crate start a loop with.

use crate::{ConfigSnapshot, Content, Limits, LoopSpec};

/// A new prompt that says `hello`.
pub(crate) fn spec(limits: Limits) -> LoopSpec {
    let config = ConfigSnapshot {
        model: "snap-model".to_owned(),
        provider: "snap-provider".to_owned(),
        config_id: None,
        name: None,
        api: None,
        base_url: None,
        reasoning: None,
        context_window: None,
        max_tokens: None,
        thinking_level: None,
        temperature: None,
    };
    let input = vec![Content::text("hello")];
    LoopSpec {
        agent_id: "agent".to_owned(),
        limits,
        ..LoopSpec::prompt("s".into(), "s.cfg.1".into(), "p1".into(), config, input)
    }
}

/// The loop of most tests.
pub(crate) fn prompt() -> LoopSpec {
    spec(Limits::default())
}
