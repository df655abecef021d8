//! Fixture: what the tests of this crate start a loop with.

use crate::{ConfigSnapshot, Content, ContinuationKind, Limits, LoopSpec, TurnTrigger};

/// A new prompt that says `hello`.
pub(crate) fn spec(limits: Limits) -> LoopSpec {
    LoopSpec {
        session_id: "s".into(),
        loop_id: "s.cfg.1".into(),
        agent_id: "agent".to_owned(),
        prompt_id: "p1".into(),
        parent_loop_id: None,
        continuation_kind: ContinuationKind::Initial,
        trigger: TurnTrigger::User,
        config: ConfigSnapshot {
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
        },
        input: vec![Content::text("hello")],
        limits,
    }
}

/// The loop of most tests.
pub(crate) fn prompt() -> LoopSpec {
    spec(Limits::default())
}
