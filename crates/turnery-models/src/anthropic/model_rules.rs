//! States which parameters for thinking and sampling each model accepts.
//!
//! Sources: the migration guides of the Claude models at <https://platform.claude.com/docs>, and the documentation of
//! the Messages APIs of Moonshot, MiniMax, DeepSeek and z.ai.

use crate::history::ReasoningScope;

/// Parameter for the amount of thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThinkingMode {
    /// `enabled` with a number of tokens.
    Budget,
    /// `adaptive` with an effort; a budget is rejected.
    Adaptive,
    /// An effort only; the model has no parameter for thinking.
    Effort,
}

/// Parameter that stops a model from thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThinkingOff {
    /// No parameter; the newest of these models reject `disabled`.
    Omitted,
    /// `disabled`, because the model thinks by default.
    Disabled,
    /// `between_tools`, which leaves notes between calls.
    BetweenTools,
    /// The lowest effort, because the model cannot stop thinking.
    LowestEffort,
}

/// Parameters that a model accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ModelRules {
    pub(super) mode: ThinkingMode,
    pub(super) off: ThinkingOff,
    /// True if a request may set a temperature, as long as the model does not think.
    pub(super) takes_temperature: bool,
    /// True if thinking between calls needs a header. Adaptive models do it by themselves.
    pub(super) needs_interleaved_header: bool,
    /// True for Claude, which signs its reasoning. Other models take theirs back without a signature.
    pub(super) signs_reasoning: bool,
    /// True if the efforts are `low`, `high` and `max`, without a `medium`.
    pub(super) lacks_medium_effort: bool,
    /// True if the model can be made to call a tool with arguments that fit its schema.
    pub(super) enforces_schemas: bool,
}

impl ModelRules {
    /// Returns the rules for a model; accepts names of resellers (`anthropic/claude-sonnet-4.5`).
    pub(super) fn of(model: &str) -> Self {
        match claude_family(model) {
            Some(name) => Self::of_claude(name),
            None => Self::of_other(model),
        }
    }

    fn of_claude(name: &str) -> Self {
        let version = version(name);
        let since = |first: (u32, u32)| version.is_none_or(|version| version >= first);
        let is = |family: &str| name.starts_with(family);
        Self {
            mode: match since((4, 6)) {
                true => ThinkingMode::Adaptive,
                false => ThinkingMode::Budget,
            },
            off: match version {
                Some(version) if version < (5, 0) => ThinkingOff::Omitted,
                // The previews have no version, and cannot stop thinking either.
                None => ThinkingOff::LowestEffort,
                Some(_) if is("fable") || is("mythos") => ThinkingOff::LowestEffort,
                Some(version) if version >= (5, 5) && is("sonnet") => ThinkingOff::BetweenTools,
                Some(version) if version >= (5, 5) && is("opus") => ThinkingOff::LowestEffort,
                Some(_) => ThinkingOff::Disabled,
            },
            takes_temperature: !since((4, 7)),
            needs_interleaved_header: since((4, 0)) && !since((4, 6)),
            signs_reasoning: true,
            lacks_medium_effort: false,
            enforces_schemas: since((4, 5)),
        }
    }

    fn of_other(model: &str) -> Self {
        let is_kimi_3 = model.to_ascii_lowercase().contains("kimi-k3");
        Self {
            mode: match is_kimi_3 {
                true => ThinkingMode::Effort,
                false => ThinkingMode::Budget,
            },
            off: match is_kimi_3 {
                true => ThinkingOff::LowestEffort,
                false => ThinkingOff::Disabled,
            },
            takes_temperature: true,
            needs_interleaved_header: false,
            signs_reasoning: false,
            lacks_medium_effort: is_kimi_3,
            enforces_schemas: false,
        }
    }

    /// Returns the requests in which the model's reasoning is sent back: Claude signs its context along.
    pub(super) fn reasoning_scope(self) -> ReasoningScope {
        match self.signs_reasoning {
            true => ReasoningScope::SameContext,
            false => ReasoningScope::SameModel,
        }
    }

    /// Returns true if the model thinks in a request without a parameter for thinking.
    pub(super) fn thinks_by_default(self) -> bool {
        self.off != ThinkingOff::Omitted && self.signs_reasoning
    }
}

/// Returns the name of a Claude model after `claude-`: `opus-4-8`, `3-7-sonnet-latest`.
fn claude_family(model: &str) -> Option<&str> {
    let name = model.rsplit('/').next()?;
    // Resellers append variants (`:online`), Bedrock a revision (`-v1:0`).
    let name = name.split(':').next()?;
    // Bedrock puts the region and the vendor before the name.
    let name = name
        .rsplit_once("anthropic.")
        .map_or(name, |(_, name)| name);
    name.strip_prefix("claude-")
}

/// Returns true for Claude models; accepts names of resellers.
pub(crate) fn is_claude(model: &str) -> bool {
    claude_family(model).is_some()
}

/// Returns true if a request may set a temperature for the model, as long as it does not think.
pub(crate) fn takes_temperature(model: &str) -> bool {
    ModelRules::of(model).takes_temperature
}

/// Returns the version (major, minor) in a name; `None` if it has none.
fn version(name: &str) -> Option<(u32, u32)> {
    // Longer numbers are dates.
    let mut numbers = name
        .split(['-', '.', '@'])
        .filter(|word| word.len() <= 2)
        .filter_map(|word| word.parse::<u32>().ok());
    let major = numbers.next()?;
    Some((major, numbers.next().unwrap_or(0)))
}

/// Returns true if the model decides itself how long it thinks.
#[cfg(test)]
pub(crate) fn is_adaptive(model: &str) -> bool {
    ModelRules::of(model).mode == ThinkingMode::Adaptive
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quirks 18 to 21, by the vendor's migration guides.
    #[test]
    fn rules_follow_the_version_of_claude() {
        use ThinkingMode::{Adaptive, Budget};
        use ThinkingOff::{BetweenTools, Disabled, LowestEffort, Omitted};
        for (model, mode, off, temperature, header) in [
            ("claude-3-7-sonnet-latest", Budget, Omitted, true, false),
            ("claude-opus-4-20250514", Budget, Omitted, true, true),
            ("claude-sonnet-4-5-20250929", Budget, Omitted, true, true),
            ("anthropic/claude-sonnet-4.5", Budget, Omitted, true, true),
            ("claude-opus-4-6", Adaptive, Omitted, true, false),
            (
                "us.anthropic.claude-opus-4-6-v1",
                Adaptive,
                Omitted,
                true,
                false,
            ),
            (
                "us.anthropic.claude-sonnet-4-20250514-v1:0",
                Budget,
                Omitted,
                true,
                true,
            ),
            ("claude-opus-4-7", Adaptive, Omitted, false, false),
            (
                "anthropic/claude-opus-4.8:online",
                Adaptive,
                Omitted,
                false,
                false,
            ),
            (
                "anthropic/claude-opus-5.5:thinking",
                Adaptive,
                LowestEffort,
                false,
                false,
            ),
            ("claude-opus-4-8", Adaptive, Omitted, false, false),
            ("claude-opus-5", Adaptive, Disabled, false, false),
            ("claude-sonnet-5", Adaptive, Disabled, false, false),
            ("claude-haiku-5-5", Adaptive, Disabled, false, false),
            ("claude-sonnet-5-5", Adaptive, BetweenTools, false, false),
            ("claude-opus-5-5", Adaptive, LowestEffort, false, false),
            ("claude-fable-5", Adaptive, LowestEffort, false, false),
            ("claude-fable-5-1", Adaptive, LowestEffort, false, false),
            (
                "claude-mythos-preview",
                Adaptive,
                LowestEffort,
                false,
                false,
            ),
        ] {
            let rules = ModelRules::of(model);
            let found = (
                rules.mode,
                rules.off,
                rules.takes_temperature,
                rules.needs_interleaved_header,
            );
            assert_eq!(found, (mode, off, temperature, header), "{model}");
            assert!(rules.signs_reasoning, "{model}");
        }
    }

    #[test]
    fn other_models_keep_the_common_ground() {
        for model in ["glm-5", "MiniMax-M3", "deepseek-v4-pro", "kimi-k2.6"] {
            let rules = ModelRules::of(model);
            assert_eq!(
                (rules.mode, rules.off),
                (ThinkingMode::Budget, ThinkingOff::Disabled),
                "{model}"
            );
            assert!(
                !rules.signs_reasoning && !rules.needs_interleaved_header,
                "{model}"
            );
            assert!(!rules.thinks_by_default(), "{model}");
        }
        assert_eq!(ModelRules::of("kimi-k3").mode, ThinkingMode::Effort);
        assert_eq!(
            ModelRules::of("notclaude-opus-5").off,
            ThinkingOff::Disabled
        );
    }

    #[test]
    fn claude_enforces_schemas_since_4_5() {
        for name in [
            "claude-3-7-sonnet-latest",
            "claude-opus-4-1-20250805",
            "gpt-5",
        ] {
            assert!(!ModelRules::of(name).enforces_schemas, "{name}");
        }
        for name in [
            "claude-haiku-4-5-20251001",
            "anthropic/claude-sonnet-4.5",
            "claude-opus-5",
        ] {
            assert!(ModelRules::of(name).enforces_schemas, "{name}");
        }
    }
}
