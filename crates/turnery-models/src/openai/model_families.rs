//! States what families of models do differently wherever they are served. A reseller's name is accepted: the family
//! follows from the last part of it.

use super::quirks::{CallIdForm, Efforts, Quirks, ReasoningReplay, TemperatureRule};
use crate::{anthropic::model_rules, history::ReasoningScope};

/// Returns the name of a model without the path of a reseller and without a tag, in lower case, with a point in its
/// version: `accounts/fireworks/models/kimi-k2p6` is `kimi-k2.6`.
pub(crate) fn family_name(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.split(':').next().unwrap_or(name).to_ascii_lowercase();
    let bytes = name.as_bytes();
    let is_digit = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(u8::is_ascii_digit)
    };
    name.char_indices()
        .map(|(at, c)| match c {
            'p' if is_digit(at.checked_sub(1)) && is_digit(at.checked_add(1)) => '.',
            c => c,
        })
        .collect()
}

/// Returns the quirks of a host for the model with this family name.
pub(crate) fn adapt(name: &str, quirks: Quirks) -> Quirks {
    if let Some(quirks) = adapt_openai(name, quirks) {
        return quirks;
    }
    if model_rules::is_claude(name) {
        return Quirks {
            temperature: match model_rules::takes_temperature(name) {
                true => TemperatureRule::WithoutThinking,
                false => TemperatureRule::Rejected,
            },
            reasoning_scope: ReasoningScope::SameContext,
            call_ids: CallIdForm::Claude,
            ..quirks
        };
    }
    if name.starts_with("deepseek-v4") {
        return Quirks {
            missing_reasoning: fill(quirks, ""),
            forces_calls_without_thinking: true,
            ..quirks
        };
    }
    if name.starts_with("deepseek-") {
        return Quirks {
            reasoning_replay: match quirks.reasoning_replay {
                ReasoningReplay::Never => ReasoningReplay::Never,
                ReasoningReplay::Round | ReasoningReplay::Always => ReasoningReplay::Round,
            },
            can_force_calls: quirks.can_force_calls && !is_deepseek_reasoner(name),
            ..quirks
        };
    }
    if is_thinking_kimi(name) {
        return Quirks {
            // Moonshot takes an empty text for a missing one.
            missing_reasoning: fill(quirks, " "),
            temperature: TemperatureRule::Rejected,
            forces_calls_without_thinking: true,
            ..quirks
        };
    }
    quirks
}

fn fill(quirks: Quirks, text: &'static str) -> Option<&'static str> {
    match quirks.reasoning_replay {
        ReasoningReplay::Never => None,
        ReasoningReplay::Round | ReasoningReplay::Always => Some(text),
    }
}

fn is_deepseek_reasoner(name: &str) -> bool {
    name.starts_with("deepseek-reasoner") || name.starts_with("deepseek-r1")
}

/// Returns true for the Kimi models that think: K2 Thinking, K2.5 and later.
pub(crate) fn is_thinking_kimi(name: &str) -> bool {
    let thinking = ["kimi-k2-thinking", "kimi-k2.", "kimi-thinking"];
    let is_later = |rest: &str| rest.starts_with(|c: char| ('3'..='9').contains(&c));
    thinking.iter().any(|prefix| name.starts_with(prefix))
        || name.strip_prefix("kimi-k").is_some_and(is_later)
}

/// Returns true for the models of OpenAI.
pub(crate) fn is_openai(name: &str) -> bool {
    is_o_series(name) || name.starts_with("gpt-")
}

/// Returns true for the models of Mistral.
pub(crate) fn is_mistral(name: &str) -> bool {
    ["mistral", "ministral", "magistral", "codestral", "devstral"]
        .iter()
        .any(|family| name.starts_with(family))
}

fn is_o_series(name: &str) -> bool {
    ["o1", "o3", "o4"].iter().any(|family| {
        name.strip_prefix(family)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

/// Returns the quirks of a model of OpenAI; `None` for other models.
fn adapt_openai(name: &str, quirks: Quirks) -> Option<Quirks> {
    let thinks_only_without_tools = quirks.thinks_only_without_tools;
    // Models before GPT-5.4 think beside tools, and reject the effort `none`.
    let quirks = Quirks {
        thinks_only_without_tools: false,
        ..quirks
    };
    if is_o_series(name) {
        let quirks = quirks.with_efforts(Efforts::FROM_LOW);
        return Some(Quirks {
            temperature: TemperatureRule::Rejected,
            ..quirks
        });
    }
    if name.starts_with("gpt-oss") {
        return Some(quirks.with_efforts(Efforts::FROM_LOW));
    }
    let rest = name.strip_prefix("gpt-5")?;
    let (minor, variant) = match rest.strip_prefix('.') {
        Some(rest) => {
            let end = rest.find(|c: char| !c.is_ascii_digit());
            let (minor, variant) = rest.split_at(end.unwrap_or(rest.len()));
            (minor.parse().unwrap_or(u32::MAX), variant)
        }
        None => (0, rest),
    };
    if variant.starts_with("-chat") {
        let temperature = match minor {
            0 => TemperatureRule::Accepted,
            _ => TemperatureRule::Rejected,
        };
        let quirks = quirks.with_efforts(Efforts::UNAVAILABLE);
        return Some(Quirks {
            temperature,
            ..quirks
        });
    }
    let efforts = match (minor, variant) {
        (0, variant) if variant.starts_with("-pro") => Efforts {
            off: Some("high"),
            ..Efforts::from_low("high", "high", "high")
        },
        (_, variant) if variant.starts_with("-pro") => Efforts {
            off: Some("medium"),
            ..Efforts::from_low("medium", "medium", "high")
        },
        (0..=2, variant) if variant.starts_with("-codex") => Efforts::FROM_LOW,
        (0, _) => Efforts::FROM_MINIMAL,
        (_, _) => Efforts::WITH_NONE,
    };
    Some(Quirks {
        temperature: TemperatureRule::Rejected,
        thinks_only_without_tools: thinks_only_without_tools
            && minor >= 4
            && efforts == Efforts::WITH_NONE,
        ..quirks.with_efforts(efforts)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Thinking, openai::quirks::ThinkingSwitch};

    #[test]
    fn family_follows_from_any_seller_s_name() {
        for (model, family) in [
            ("gpt-5.1", "gpt-5.1"),
            ("openai/gpt-oss-120b", "gpt-oss-120b"),
            ("accounts/fireworks/models/kimi-k2p6", "kimi-k2.6"),
            ("accounts/fireworks/models/glm-5p2", "glm-5.2"),
            ("deepseek/deepseek-v4-pro:free", "deepseek-v4-pro"),
            ("moonshotai/Kimi-K2.7-Code", "kimi-k2.7-code"),
            ("qwen3-4p", "qwen3-4p"),
            ("p", "p"),
            ("", ""),
        ] {
            assert_eq!(family_name(model), family, "{model}");
        }
    }

    /// Quirk 34: efforts by model, from the table of the reasoning guide of OpenAI.
    // proves: CHAT-34
    #[test]
    fn effort_is_clamped_to_the_model() {
        let cases = [
            // model, off, low, high
            ("o3", Some("low"), Some("low"), Some("high")),
            ("o4-mini-2025-04-16", Some("low"), Some("low"), Some("high")),
            ("gpt-5", Some("minimal"), Some("low"), Some("high")),
            ("gpt-5-mini", Some("minimal"), Some("low"), Some("high")),
            ("gpt-5-codex", Some("low"), Some("low"), Some("high")),
            ("gpt-5-pro", Some("high"), Some("high"), Some("high")),
            ("gpt-5-chat-latest", None, None, None),
            ("gpt-5.1", Some("none"), Some("low"), Some("high")),
            ("gpt-5.1-chat-latest", None, None, None),
            ("gpt-5.1-codex-max", Some("low"), Some("low"), Some("high")),
            ("gpt-5.2-pro", Some("medium"), Some("medium"), Some("high")),
            ("gpt-5.3-codex", Some("none"), Some("low"), Some("high")),
            ("gpt-5.6-terra", Some("none"), Some("low"), Some("high")),
            ("gpt-oss-20b", Some("low"), Some("low"), Some("high")),
            ("qwen3", Some("none"), Some("low"), Some("high")),
        ];
        for (model, off, low, high) in cases {
            let ThinkingSwitch::Effort(efforts) = adapt(model, Quirks::DEFAULT).thinking else {
                panic!("{model}");
            };
            let words = [Thinking::Off, Thinking::Low, Thinking::High].map(|it| efforts.word(it));
            assert_eq!(words, [off, low, high], "{model}");
            assert_eq!(efforts.word(Thinking::Default), None, "{model}");
        }
    }

    #[test]
    fn only_kimi_models_that_think_are_told() {
        for model in [
            "kimi-k2-thinking-turbo",
            "kimi-k2.5",
            "kimi-k2.7-code",
            "kimi-k3",
        ] {
            assert!(is_thinking_kimi(model), "{model}");
        }
        for model in ["kimi-k2-0905-preview", "kimi-k2-instruct", "moonshot-v1-8k"] {
            assert!(!is_thinking_kimi(model), "{model}");
        }
    }
}
