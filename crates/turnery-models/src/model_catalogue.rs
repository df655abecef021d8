//! Built-in facts about models, looked up by name without a request.

/// Facts about a family of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelFacts {
    /// Size of the context window. Unit: tokens.
    pub(crate) context: u32,
    /// Largest response. Unit: tokens.
    pub(crate) output: u32,
    pub(crate) images: bool,
    pub(crate) audio: bool,
    pub(crate) reasoning: bool,
}

const fn entry(context: u32, output: u32, images: bool, reasoning: bool) -> ModelFacts {
    ModelFacts {
        context,
        output,
        images,
        audio: false,
        reasoning,
    }
}

/// Returns a model that accepts audio but no images.
const fn audio_entry(context: u32, output: u32) -> ModelFacts {
    ModelFacts {
        audio: true,
        ..entry(context, output, false, false)
    }
}

/// Name prefixes of families with their facts. The first matching row applies.
const MODEL_FAMILIES: &[(&str, ModelFacts)] = &[
    ("claude-3-7", entry(200_000, 64_000, true, true)),
    ("claude-3-5", entry(200_000, 8_192, true, false)),
    ("claude-3", entry(200_000, 4_096, true, false)),
    ("claude-opus-4-5", entry(200_000, 64_000, true, true)),
    ("claude-sonnet-4-5", entry(200_000, 64_000, true, true)),
    ("claude-sonnet-4-2", entry(200_000, 64_000, true, true)),
    ("claude-sonnet-4-0", entry(200_000, 64_000, true, true)),
    ("claude-haiku-4-5", entry(200_000, 64_000, true, true)),
    ("claude-opus-4-2", entry(200_000, 32_000, true, true)),
    ("claude-opus-4-1", entry(200_000, 32_000, true, true)),
    ("claude-opus-4-0", entry(200_000, 32_000, true, true)),
    ("claude-", entry(1_000_000, 64_000, true, true)),
    ("gpt-5-chat", entry(128_000, 16_384, true, false)),
    ("gpt-5", entry(400_000, 128_000, true, true)),
    ("gpt-4-1", entry(1_047_576, 32_768, true, false)),
    ("gpt-4o-audio", audio_entry(128_000, 16_384)),
    ("gpt-4o-mini-audio", audio_entry(128_000, 16_384)),
    ("gpt-audio", audio_entry(128_000, 16_384)),
    ("gpt-4o", entry(128_000, 16_384, true, false)),
    ("gpt-4-turbo", entry(128_000, 4_096, true, false)),
    ("gpt-oss", entry(131_072, 32_768, false, true)),
    ("o1", entry(200_000, 100_000, true, true)),
    ("o3", entry(200_000, 100_000, true, true)),
    ("o4", entry(200_000, 100_000, true, true)),
    ("deepseek-reasoner", entry(128_000, 64_000, false, true)),
    ("deepseek-chat", entry(128_000, 8_192, false, false)),
    ("mistral-large", entry(128_000, 32_768, true, false)),
    ("mistral-medium", entry(128_000, 32_768, true, false)),
    ("mistral-small", entry(128_000, 32_768, true, false)),
    ("magistral", entry(128_000, 40_000, true, true)),
    ("devstral", entry(128_000, 32_768, false, false)),
    ("codestral", entry(128_000, 32_768, false, false)),
];

/// Returns the facts about `model`; accepts names of resellers (`anthropic/claude-sonnet-4.5`).
pub(crate) fn look_up(model: &str) -> Option<ModelFacts> {
    let name = model.rsplit('/').next().unwrap_or(model).replace('.', "-");
    MODEL_FAMILIES
        .iter()
        .find(|(prefix, _)| name.starts_with(prefix))
        .map(|(_, known)| *known)
}

/// Returns true if a model decides itself how long it thinks (Claude since 4.6) instead of taking a budget.
pub(crate) fn has_adaptive_thinking(model: &str) -> bool {
    is_claude_since(model, (4, 6))
}

/// Returns true if a Claude model can be made to call a tool with arguments that fit its schema (since 4.5).
pub(crate) fn enforces_schemas(model: &str) -> bool {
    is_claude_since(model, (4, 5))
}

/// Returns true for Claude models of this version (major, minor) or a later one, or whose name has no version.
fn is_claude_since(model: &str, first: (u32, u32)) -> bool {
    let Some(rest) = model
        .rsplit('/')
        .next()
        .and_then(|m| m.strip_prefix("claude-"))
    else {
        return false;
    };
    let mut version = rest
        .split(['-', '.', '@'])
        .filter(|word| word.len() <= 2)
        .filter_map(|word| word.parse::<u32>().ok());
    match (version.next(), version.next()) {
        (Some(major), minor) => (major, minor.unwrap_or(0)) >= first,
        (None, _) => true,
    }
}

/// Returns true for Claude models, which think only on request.
pub(crate) fn is_claude(model: &str) -> bool {
    model
        .rsplit('/')
        .next()
        .is_some_and(|name| name.starts_with("claude-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_match_by_name_prefix() {
        let limits = |name| look_up(name).map(|known| (known.context, known.output));
        assert_eq!(
            limits("claude-sonnet-4-5-20250929"),
            Some((200_000, 64_000))
        );
        assert_eq!(limits("claude-sonnet-4-20250514"), Some((200_000, 64_000)));
        assert_eq!(limits("claude-opus-4-8"), Some((1_000_000, 64_000)));
        assert_eq!(limits("anthropic/claude-3.5-haiku"), Some((200_000, 8_192)));
        assert_eq!(limits("gpt-5.1-codex"), Some((400_000, 128_000)));
        assert_eq!(limits("gpt-4.1-mini"), Some((1_047_576, 32_768)));
        assert_eq!(limits("qwen3:8b"), None);
    }

    #[test]
    fn only_audio_models_accept_audio() {
        let listens = |name| look_up(name).is_some_and(|known| known.audio);
        for name in [
            "gpt-audio",
            "gpt-audio-mini-2025-10-06",
            "gpt-4o-audio-preview",
            "gpt-4o-mini-audio-preview-2024-12-17",
            "openai/gpt-4o-audio-preview",
        ] {
            assert!(listens(name), "{name}");
        }
        for name in [
            "gpt-4o",
            "gpt-4o-mini",
            "gpt-5.1",
            "claude-opus-4-8",
            "x-audio",
        ] {
            assert!(!listens(name), "{name}");
        }
    }

    #[test]
    fn claude_takes_budgets_up_to_4_5() {
        for name in [
            "claude-3-7-sonnet-latest",
            "claude-opus-4-20250514",
            "claude-haiku-4-5",
            "glm-5",
            "claude-sonnet-4.5",
        ] {
            assert!(!has_adaptive_thinking(name), "{name}");
        }
        for name in [
            "claude-opus-4-6",
            "claude-sonnet-4-6-20260101",
            "claude-opus-5",
            "anthropic/claude-opus-4.8",
            "claude-mythos-preview",
        ] {
            assert!(has_adaptive_thinking(name), "{name}");
        }
    }

    #[test]
    fn claude_enforces_schemas_since_4_5() {
        for name in [
            "claude-3-7-sonnet-latest",
            "claude-opus-4-1-20250805",
            "gpt-5",
        ] {
            assert!(!enforces_schemas(name), "{name}");
        }
        for name in [
            "claude-haiku-4-5-20251001",
            "anthropic/claude-sonnet-4.5",
            "claude-opus-5",
        ] {
            assert!(enforces_schemas(name), "{name}");
        }
    }
}
