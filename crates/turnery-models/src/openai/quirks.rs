//! Describes the differences between servers that implement Chat Completions.
//!
//! Selected by host, not by provider name: `OPENAI_BASE_URL` often points to another server.

/// Field that limits the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitField {
    /// `max_completion_tokens`.
    Completion,
    /// `max_tokens`.
    MaxTokens,
    /// Neither field: the server applies its own limit. Some servers reject requests whose limit and prompt
    /// together exceed the context window; others reserve credit for the whole limit.
    Omitted,
}

/// Quirks of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quirks {
    pub(super) limit: LimitField,
    /// True if the user configured the output limit, which is then sent to every model.
    pub(super) limit_is_chosen: bool,
    /// True if usage must be requested with `stream_options`; other servers always send it, and reject the
    /// option.
    pub(super) asks_usage: bool,
    /// Field for sending reasoning back within a round of tool calls.
    pub(super) reasoning_field: Option<ReasoningField>,
    /// True if `prompt_cache_key` is supported.
    pub(super) cache_key: bool,
    /// True if ids must be nine letters and digits, and a user message must not directly follow a tool
    /// message.
    pub(super) is_mistral: bool,
}

/// Field for reasoning in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReasoningField {
    /// `reasoning_content`.
    Content,
    /// `reasoning`.
    Reasoning,
}

/// Common ground, for unknown servers.
const DEFAULT_QUIRKS: Quirks = Quirks {
    limit: LimitField::Omitted,
    limit_is_chosen: false,
    asks_usage: true,
    reasoning_field: Some(ReasoningField::Content),
    cache_key: false,
    is_mistral: false,
};

impl Quirks {
    /// Returns the quirks with an output limit configured by the user.
    pub(super) fn with_user_limit(self) -> Self {
        Self {
            limit: match self.limit {
                LimitField::Omitted => LimitField::MaxTokens,
                named @ (LimitField::Completion | LimitField::MaxTokens) => named,
            },
            limit_is_chosen: true,
            ..self
        }
    }

    /// Returns the quirks of the server at `base_url`.
    pub(super) fn for_base_url(base_url: &str) -> Self {
        let url = reqwest::Url::parse(base_url).ok();
        let host = url.as_ref().and_then(reqwest::Url::host_str).unwrap_or("");
        let is_at = |domain: &str| {
            host.strip_suffix(domain)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if is_at("openai.com") {
            Self {
                limit: LimitField::Completion,
                reasoning_field: None,
                cache_key: true,
                ..DEFAULT_QUIRKS
            }
        } else if is_at("mistral.ai") {
            Self {
                limit: LimitField::MaxTokens,
                asks_usage: false,
                reasoning_field: None,
                is_mistral: true,
                ..DEFAULT_QUIRKS
            }
        } else if is_at("deepseek.com") {
            Self {
                limit: LimitField::MaxTokens,
                ..DEFAULT_QUIRKS
            }
        } else if is_at("openrouter.ai") {
            Self {
                reasoning_field: Some(ReasoningField::Reasoning),
                ..DEFAULT_QUIRKS
            }
        } else {
            DEFAULT_QUIRKS
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_limit_is_sent_to_every_server() {
        for (url, field) in [
            ("http://127.0.0.1:8080/v1", LimitField::MaxTokens),
            ("https://api.openai.com/v1", LimitField::Completion),
        ] {
            let quirks = Quirks::for_base_url(url).with_user_limit();
            assert_eq!(
                (quirks.limit, quirks.limit_is_chosen),
                (field, true),
                "{url}"
            );
        }
    }

    #[test]
    fn quirks_depend_on_the_host() {
        assert_eq!(
            Quirks::for_base_url("http://127.0.0.1:11434/v1"),
            DEFAULT_QUIRKS
        );
        assert_eq!(
            Quirks::for_base_url("https://notopenai.com/v1"),
            DEFAULT_QUIRKS
        );
        assert_eq!(
            Quirks::for_base_url("https://api.openai.com/v1").limit,
            LimitField::Completion
        );
        assert_eq!(
            Quirks::for_base_url("https://api.deepseek.com/v1").limit,
            LimitField::MaxTokens
        );
        assert!(!Quirks::for_base_url("https://api.mistral.ai/v1").asks_usage);
    }
}
