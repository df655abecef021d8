//! Describes how hosts and models deviate from the common ground of Chat Completions.
//!
//! A deviation depends on the host and on the model: [`Quirks::DEFAULT`] is the common ground, the file of a provider
//! (`providers/`) states what its host does differently, and `model_families` what a model does differently wherever it
//! is served.

use crate::{Thinking, history::ReasoningScope};

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

/// Place of reasoning in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReasoningField {
    /// `reasoning_content`: DeepSeek, Kimi, GLM, older vLLM, llama.cpp, LM Studio.
    ReasoningContent,
    /// `reasoning`: OpenRouter, Groq, Together, Ollama, newer vLLM.
    Reasoning,
    /// `reasoning_text`: GitHub Copilot.
    ReasoningText,
    /// Parts of the content with the type `thinking`: Mistral.
    ThinkingParts,
}

impl ReasoningField {
    /// Returns the name, which is stored with a response that did not use the usual field of its host.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::ReasoningContent => "reasoning_content",
            Self::Reasoning => "reasoning",
            Self::ReasoningText => "reasoning_text",
            Self::ThinkingParts => "thinking_parts",
        }
    }

    /// Returns the field with this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let all = [
            Self::ReasoningContent,
            Self::Reasoning,
            Self::ReasoningText,
            Self::ThinkingParts,
        ];
        all.into_iter().find(|field| field.as_str() == name)
    }
}

/// Messages that are sent back with their reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReasoningReplay {
    /// No messages: the host rejects reasoning in them.
    Never,
    /// Those since the last message of the user.
    Round,
    /// All.
    Always,
}

/// Form of call ids that a host accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallIdForm {
    Any,
    /// At most 40 characters: OpenAI.
    UpTo40,
    /// At most 64 letters, digits, `_` and `-`: Claude, whose rule resellers pass on.
    Claude,
    /// Exactly nine letters and digits: Mistral.
    NineAlphanumerics,
}

/// Condition under which a temperature is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TemperatureRule {
    Accepted,
    /// Rejected if the request asks for thinking.
    WithoutThinking,
    Rejected,
}

/// Words for the thinking levels. `None`: the level cannot be expressed, so the default of the model applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Efforts {
    pub(crate) off: Option<&'static str>,
    pub(crate) low: Option<&'static str>,
    pub(crate) medium: Option<&'static str>,
    pub(crate) high: Option<&'static str>,
}

impl Efforts {
    /// All levels, `none` included.
    pub(crate) const WITH_NONE: Self = Self::from_off("none");
    /// The model always thinks; `low` is the least.
    pub(crate) const FROM_LOW: Self = Self::from_off("low");
    /// The model always thinks; `minimal` is the least.
    pub(crate) const FROM_MINIMAL: Self = Self::from_off("minimal");
    /// No level.
    pub(crate) const UNAVAILABLE: Self = Self {
        off: None,
        low: None,
        medium: None,
        high: None,
    };

    /// Thinking can only be switched off.
    pub(crate) const ONLY_NONE: Self = Self {
        off: Some("none"),
        ..Self::UNAVAILABLE
    };

    const fn from_off(off: &'static str) -> Self {
        Self {
            off: Some(off),
            ..Self::from_low("low", "medium", "high")
        }
    }

    /// Thinking can only be graded, not switched off.
    pub(crate) const fn from_low(
        low: &'static str,
        medium: &'static str,
        high: &'static str,
    ) -> Self {
        Self {
            off: None,
            low: Some(low),
            medium: Some(medium),
            high: Some(high),
        }
    }

    /// Thinking is on with `word` at every level, and off with `none`.
    pub(crate) const fn toggle(word: &'static str) -> Self {
        Self {
            off: Some("none"),
            ..Self::from_low(word, word, word)
        }
    }

    /// Returns the word for a level.
    pub(crate) fn word(self, level: Thinking) -> Option<&'static str> {
        match level {
            Thinking::Default => None,
            Thinking::Off => self.off,
            Thinking::Low => self.low,
            Thinking::Medium => self.medium,
            Thinking::High => self.high,
        }
    }
}

/// Parameter that requests the thinking level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThinkingSwitch {
    /// Not at all.
    None,
    /// `reasoning_effort`.
    Effort(Efforts),
    /// `reasoning: {"effort": …}`: OpenRouter, Vercel.
    ReasoningEffort(Efforts),
    /// `reasoning: {"enabled": …}`: Together.
    ReasoningEnabled,
    /// `thinking: {"type": "enabled" | "disabled"}`, and `reasoning_effort` while enabled: DeepSeek, Kimi, GLM.
    Type {
        efforts: Efforts,
        /// False if the model rejects `disabled`.
        can_disable: bool,
        history: ThinkingHistory,
    },
    /// `enable_thinking`: Qwen.
    EnableThinking,
    /// `chat_template_kwargs: {"enable_thinking": …}`: NVIDIA, SambaNova.
    TemplateArgument,
}

/// Parameter that makes a host read the reasoning of earlier rounds, which it would ignore otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThinkingHistory {
    Default,
    /// `keep: "all"`: Kimi.
    KeepAll,
    /// `clear_thinking: false`: GLM.
    NotCleared,
}

/// Deviations of one model on one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quirks {
    pub(crate) limit: LimitField,
    /// True if the user configured the output limit, which is then sent to every model.
    pub(crate) has_user_limit: bool,
    /// True if usage must be requested with `stream_options`; other servers always send it, and reject the
    /// option.
    pub(crate) asks_usage: bool,
    pub(crate) reasoning_replay: ReasoningReplay,
    /// Field for sending reasoning back, unless the response came with another one.
    pub(crate) reasoning_field: ReasoningField,
    /// Text in place of reasoning that was dropped, for models that reject a message without the field.
    pub(crate) missing_reasoning: Option<&'static str>,
    /// Requests in which reasoning is sent back.
    pub(crate) reasoning_scope: ReasoningScope,
    pub(crate) thinking: ThinkingSwitch,
    /// True if reasoning is rejected together with tools, and must be switched off explicitly.
    pub(crate) thinks_only_without_tools: bool,
    /// Value of `reasoning_format`.
    pub(crate) reasoning_format: Option<&'static str>,
    pub(crate) temperature: TemperatureRule,
    /// False if the host has no tools: calls and results in the history are then sent as text.
    pub(crate) takes_tools: bool,
    /// True if `tool_choice: "none"` is accepted.
    pub(crate) can_forbid_calls: bool,
    /// True if `tool_choice: "required"` is accepted.
    pub(crate) can_force_calls: bool,
    /// True if `tool_choice: "required"` is accepted only while thinking is switched off.
    pub(crate) forces_calls_without_thinking: bool,
    /// True if `prompt_cache_key` is supported.
    pub(crate) cache_key: bool,
    /// True if the ends of cached prefixes are marked with `cache_control`.
    pub(crate) cache_marks: bool,
    pub(crate) call_ids: CallIdForm,
    /// True if a user message must not directly follow a tool message.
    pub(crate) separates_results: bool,
}

impl Quirks {
    /// Common ground, for unknown servers.
    pub(crate) const DEFAULT: Self = Self {
        limit: LimitField::Omitted,
        has_user_limit: false,
        asks_usage: true,
        reasoning_replay: ReasoningReplay::Always,
        reasoning_field: ReasoningField::ReasoningContent,
        missing_reasoning: None,
        reasoning_scope: ReasoningScope::SameModel,
        thinking: ThinkingSwitch::Effort(Efforts::WITH_NONE),
        thinks_only_without_tools: false,
        reasoning_format: None,
        temperature: TemperatureRule::Accepted,
        takes_tools: true,
        can_forbid_calls: true,
        can_force_calls: true,
        forces_calls_without_thinking: false,
        cache_key: false,
        cache_marks: false,
        call_ids: CallIdForm::Any,
        separates_results: false,
    };

    /// Returns the quirks with an output limit configured by the user.
    pub(crate) fn with_user_limit(self) -> Self {
        Self {
            limit: match self.limit {
                LimitField::Omitted => LimitField::MaxTokens,
                named @ (LimitField::MaxCompletionTokens | LimitField::MaxTokens) => named,
            },
            has_user_limit: true,
            ..self
        }
    }

    /// Returns the quirks with efforts, for a host that takes `reasoning_effort` or `reasoning.effort`. Other switches
    /// stay.
    pub(crate) fn with_efforts(self, efforts: Efforts) -> Self {
        let thinking = match self.thinking {
            ThinkingSwitch::Effort(_) => ThinkingSwitch::Effort(efforts),
            ThinkingSwitch::ReasoningEffort(_) => ThinkingSwitch::ReasoningEffort(efforts),
            other @ (ThinkingSwitch::None
            | ThinkingSwitch::ReasoningEnabled
            | ThinkingSwitch::Type { .. }
            | ThinkingSwitch::EnableThinking
            | ThinkingSwitch::TemplateArgument) => other,
        };
        Self { thinking, ..self }
    }
}
