//! Quirks: what the servers that speak Chat Completions want differently in a request.
//!
//! They go by the host, not by the provider's name: `OPENAI_BASE_URL` often leads to another server.

/// Which field limits the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitField {
    /// `max_completion_tokens`.
    Completion,
    /// `max_tokens`.
    Plain,
    /// Neither: the server's own limit is the best that is known. Some refuse a request whose limit and
    /// prompt together exceed the window; others reserve credit for all of it.
    Unsaid,
}

/// What one server wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quirks {
    pub(super) limit: LimitField,
    /// A person said how much the model may answer: that is passed on whatever the model is.
    pub(super) limit_is_chosen: bool,
    /// Usage is asked for with `stream_options`; else it comes unasked, and asking is refused.
    pub(super) asks_usage: bool,
    /// The field in which reasoning is sent back during a round of tools.
    pub(super) reasoning_field: Option<ReasoningField>,
    /// `prompt_cache_key` is understood.
    pub(super) cache_key: bool,
    /// An id is nine letters and digits, and a user may not speak right after a tool.
    pub(super) is_mistral: bool,
}

/// Where reasoning goes in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReasoningField {
    /// `reasoning_content`.
    Content,
    /// `reasoning`.
    Plain,
}

/// A server that is not known: the common ground.
const COMMON: Quirks = Quirks {
    limit: LimitField::Unsaid,
    limit_is_chosen: false,
    asks_usage: true,
    reasoning_field: Some(ReasoningField::Content),
    cache_key: false,
    is_mistral: false,
};

impl Quirks {
    /// The same, with a limit of the answer that a person chose.
    pub(super) fn choosing_limit(self) -> Self {
        Self {
            limit: match self.limit {
                LimitField::Unsaid => LimitField::Plain,
                named @ (LimitField::Completion | LimitField::Plain) => named,
            },
            limit_is_chosen: true,
            ..self
        }
    }

    /// Those of the server at `base_url`.
    pub(super) fn of(base_url: &str) -> Self {
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
                ..COMMON
            }
        } else if is_at("mistral.ai") {
            Self {
                limit: LimitField::Plain,
                asks_usage: false,
                reasoning_field: None,
                is_mistral: true,
                ..COMMON
            }
        } else if is_at("deepseek.com") {
            Self {
                limit: LimitField::Plain,
                ..COMMON
            }
        } else if is_at("openrouter.ai") {
            Self {
                reasoning_field: Some(ReasoningField::Plain),
                ..COMMON
            }
        } else {
            COMMON
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_a_person_chose_is_said_to_every_server() {
        for (url, field) in [
            ("http://127.0.0.1:8080/v1", LimitField::Plain),
            ("https://api.openai.com/v1", LimitField::Completion),
        ] {
            let quirks = Quirks::of(url).choosing_limit();
            assert_eq!(
                (quirks.limit, quirks.limit_is_chosen),
                (field, true),
                "{url}"
            );
        }
    }

    #[test]
    fn the_host_decides() {
        assert_eq!(Quirks::of("http://127.0.0.1:11434/v1"), COMMON);
        assert_eq!(Quirks::of("https://notopenai.com/v1"), COMMON);
        assert_eq!(
            Quirks::of("https://api.openai.com/v1").limit,
            LimitField::Completion
        );
        assert_eq!(
            Quirks::of("https://api.deepseek.com/v1").limit,
            LimitField::Plain
        );
        assert!(!Quirks::of("https://api.mistral.ai/v1").asks_usage);
    }
}
