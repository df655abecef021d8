//! Maps a thinking level to the parameters of a model.

use super::model_rules::{ModelRules, ThinkingMode, ThinkingOff};
use crate::{ModelInfo, Thinking};
use serde::Serialize;

/// Smallest thinking budget that the API accepts. Unit: tokens.
const MIN_BUDGET: u32 = 1024;

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ThinkingParam {
    Enabled { budget_tokens: u32 },
    Adaptive { display: &'static str },
    BetweenTools,
    Disabled,
}

/// Adaptive thinking with a readable summary, which newer models leave out by default.
const ADAPTIVE: ThinkingParam = ThinkingParam::Adaptive {
    display: "summarized",
};

/// Position of a request in a round of tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolRound {
    /// The request answers the user.
    None,
    /// The round started with thinking.
    WithThinking,
    /// The round started without thinking, for example with another model.
    WithoutThinking,
}

/// Parameters of a request for thinking.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ThinkingSetup {
    pub(super) param: Option<ThinkingParam>,
    pub(super) effort: Option<&'static str>,
    /// True if the model may think.
    pub(super) is_on: bool,
}

impl ThinkingSetup {
    pub(super) fn new(
        info: &ModelInfo,
        rules: ModelRules,
        level: Thinking,
        round: ToolRound,
    ) -> Self {
        if !info.reasoning {
            return Self::of(rules, None, None);
        }
        let would_stop = match level {
            Thinking::Default => !rules.thinks_by_default(),
            Thinking::Off => match rules.off {
                ThinkingOff::Omitted | ThinkingOff::Disabled => true,
                ThinkingOff::BetweenTools | ThinkingOff::LowestEffort => false,
            },
            Thinking::Low | Thinking::Medium | Thinking::High => false,
        };
        let (budget, effort) = match level {
            // A round that started with thinking ends with it: Claude rejects a change.
            _ if would_stop && rules.signs_reasoning && round == ToolRound::WithThinking => {
                (2048, "low")
            }
            Thinking::Default => {
                return Self::of(rules, rules.thinks_by_default().then_some(ADAPTIVE), None);
            }
            Thinking::Off => match rules.off {
                ThinkingOff::Omitted => return Self::of(rules, None, None),
                ThinkingOff::Disabled => {
                    return Self::of(rules, Some(ThinkingParam::Disabled), None);
                }
                ThinkingOff::BetweenTools => {
                    return Self::of(rules, Some(ThinkingParam::BetweenTools), None);
                }
                ThinkingOff::LowestEffort => (2048, "low"),
            },
            Thinking::Low => (2048, "low"),
            Thinking::Medium if rules.lacks_medium_effort => (8192, "high"),
            Thinking::Medium => (8192, "medium"),
            Thinking::High => (24_576, "high"),
        };
        match rules.mode {
            ThinkingMode::Adaptive => Self::of(rules, Some(ADAPTIVE), Some(effort)),
            ThinkingMode::Effort => Self::of(rules, None, Some(effort)),
            // Claude rejects a budget within a round that started without thinking. Adaptive models do not.
            ThinkingMode::Budget
                if rules.signs_reasoning && round == ToolRound::WithoutThinking =>
            {
                Self::of(rules, None, None)
            }
            ThinkingMode::Budget => {
                // At least half of the output is left for the response, and the budget must be below the limit.
                let budget_tokens = budget.min(info.max_output / 2);
                let enabled = ThinkingParam::Enabled { budget_tokens };
                let fits = budget_tokens >= MIN_BUDGET;
                Self::of(rules, fits.then_some(enabled), None)
            }
        }
    }

    fn of(rules: ModelRules, param: Option<ThinkingParam>, effort: Option<&'static str>) -> Self {
        let is_on = match param {
            None => rules.thinks_by_default() || effort.is_some(),
            Some(ThinkingParam::Disabled) => false,
            Some(
                ThinkingParam::Enabled { .. }
                | ThinkingParam::Adaptive { .. }
                | ThinkingParam::BetweenTools,
            ) => true,
        };
        Self {
            param,
            effort,
            is_on,
        }
    }
}
