//! Describes the differences between servers that implement Chat Completions.

/// Field that limits the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitField {
    /// `max_completion_tokens`.
    MaxCompletionTokens,
    /// `max_tokens`.
    MaxTokens,
    /// Neither field: the server applies its own limit. Some servers reject requests whose limit and prompt
    /// together exceed the context window; others reserve credit for the whole limit.
    Omitted,
}

/// Quirks of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quirks {
    pub(crate) limit: LimitField,
    /// True if the user configured the output limit, which is then sent to every model.
    pub(crate) limit_is_chosen: bool,
    /// True if usage must be requested with `stream_options`; other servers always send it, and reject the
    /// option.
    pub(crate) asks_usage: bool,
    /// Field for sending reasoning back within a round of tool calls.
    pub(crate) reasoning_field: Option<ReasoningField>,
    /// True if `prompt_cache_key` is supported.
    pub(crate) cache_key: bool,
    /// True if ids must be nine letters and digits, and a user message must not directly follow a tool
    /// message.
    pub(crate) is_mistral: bool,
}

/// Field for reasoning in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReasoningField {
    /// `reasoning_content`.
    ReasoningContent,
    /// `reasoning`.
    Reasoning,
}

impl Quirks {
    /// Common ground, for unknown servers.
    pub(crate) const DEFAULT: Self = Self {
        limit: LimitField::Omitted,
        limit_is_chosen: false,
        asks_usage: true,
        reasoning_field: Some(ReasoningField::ReasoningContent),
        cache_key: false,
        is_mistral: false,
    };

    /// Returns the quirks with an output limit configured by the user.
    pub(crate) fn with_user_limit(self) -> Self {
        Self {
            limit: match self.limit {
                LimitField::Omitted => LimitField::MaxTokens,
                named @ (LimitField::MaxCompletionTokens | LimitField::MaxTokens) => named,
            },
            limit_is_chosen: true,
            ..self
        }
    }
}
