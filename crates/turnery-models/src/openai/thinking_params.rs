//! Expresses the thinking level in the parameters of a host.

use super::quirks::{Quirks, ThinkingHistory, ThinkingSwitch};
use crate::Thinking;
use serde::Serialize;

/// Parameters of a request, flattened into it.
#[derive(Default, Serialize)]
pub(super) struct ThinkingParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ChatReasoningParam>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ChatThinkingParam>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enable_thinking: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_template_kwargs: Option<TemplateArguments>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ChatReasoningParam {
    Effort(&'static str),
    Enabled(bool),
}

#[derive(Serialize)]
struct ChatThinkingParam {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clear_thinking: Option<bool>,
}

#[derive(Serialize)]
struct TemplateArguments {
    enable_thinking: bool,
}

/// Returns the parameters for a level.
pub(super) fn thinking_params(quirks: &Quirks, level: Thinking, has_tools: bool) -> ThinkingParams {
    if quirks.thinks_only_without_tools && has_tools {
        return ThinkingParams {
            reasoning_effort: Some("none"),
            ..ThinkingParams::default()
        };
    }
    let is_on = match level {
        Thinking::Default => None,
        Thinking::Off => Some(false),
        Thinking::Low | Thinking::Medium | Thinking::High => Some(true),
    };
    let none = ThinkingParams::default();
    match quirks.thinking {
        ThinkingSwitch::None => none,
        ThinkingSwitch::Effort(efforts) => ThinkingParams {
            reasoning_effort: efforts.word(level),
            ..none
        },
        ThinkingSwitch::ReasoningEffort(efforts) => ThinkingParams {
            reasoning: efforts.word(level).map(ChatReasoningParam::Effort),
            ..none
        },
        ThinkingSwitch::ReasoningEnabled => ThinkingParams {
            reasoning: is_on.map(ChatReasoningParam::Enabled),
            ..none
        },
        ThinkingSwitch::Type {
            efforts,
            can_disable,
            history,
        } => ThinkingParams {
            reasoning_effort: efforts.word(level),
            thinking: thinking_param(is_on, can_disable, history),
            ..none
        },
        ThinkingSwitch::EnableThinking => ThinkingParams {
            enable_thinking: is_on,
            ..none
        },
        ThinkingSwitch::TemplateArgument => ThinkingParams {
            chat_template_kwargs: is_on
                .map(|enable_thinking| TemplateArguments { enable_thinking }),
            ..none
        },
    }
}

/// Returns the object `thinking`. `is_on` is `None` at the default level, where the object is sent only for what it says
/// about the history.
fn thinking_param(
    is_on: Option<bool>,
    can_disable: bool,
    history: ThinkingHistory,
) -> Option<ChatThinkingParam> {
    if is_on.is_none() && history == ThinkingHistory::Default {
        return None;
    }
    if is_on == Some(false) && can_disable {
        return Some(ChatThinkingParam {
            r#type: "disabled",
            keep: None,
            clear_thinking: None,
        });
    }
    Some(ChatThinkingParam {
        r#type: "enabled",
        keep: (history == ThinkingHistory::KeepAll).then_some("all"),
        clear_thinking: (history == ThinkingHistory::NotCleared).then_some(false),
    })
}
