//! Thinking by generation of the model.

use crate::{
    check::{Check, require},
    json::{has, text},
    request::ApiRequest,
};
use serde_json::Value;
use std::ops::RangeInclusive;

/// Generation of a model.
pub(super) enum Generation {
    /// The model does not think.
    Plain,
    /// 2.5: a budget in this range, or zero where thinking can be off. Unit: tokens.
    Budget {
        range: RangeInclusive<i64>,
        can_be_off: bool,
    },
    /// Since 3: these levels.
    Level(&'static [&'static str]),
}

impl Generation {
    pub(super) fn of(model: &str) -> Self {
        let Some(name) = model.strip_prefix("gemini-") else {
            return Self::Plain;
        };
        match name {
            _ if name.contains("image") || name.contains("tts") => Self::Plain,
            _ if name.starts_with("2.5-flash-lite") => Self::budget(512..=24_576, true),
            _ if name.starts_with("2.5-flash") => Self::budget(1..=24_576, true),
            _ if name.starts_with("2.5") => Self::budget(128..=32_768, false),
            _ if name.starts_with("1.") || name.starts_with("2.") => Self::Plain,
            _ if name.starts_with("3-pro") => Self::Level(&["low", "high"]),
            _ if name.starts_with("3.1-pro") || name.starts_with("3.7") => {
                Self::Level(&["low", "medium", "high"])
            }
            _ => Self::Level(&["minimal", "low", "medium", "high"]),
        }
    }

    const fn budget(range: RangeInclusive<i64>, can_be_off: bool) -> Self {
        Self::Budget { range, can_be_off }
    }

    pub(super) fn is_since_3(&self) -> bool {
        match self {
            Self::Plain | Self::Budget { .. } => false,
            Self::Level(_) => true,
        }
    }
}

fn thinking<'a>(request: &ApiRequest<'a>) -> Option<&'a Value> {
    request.body.get("generationConfig")?.get("thinkingConfig")
}

/// Budgets and levels are those of the generation; a level also works for no older model, a budget for no newer one.
pub(super) fn thinking_of_model(request: &ApiRequest<'_>) -> Check {
    let Some(thinking) = thinking(request) else {
        return Ok(());
    };
    let budget = thinking.get("thinkingBudget").and_then(Value::as_i64);
    let level = text(thinking, "thinkingLevel");
    let is_accepted = match Generation::of(request.model()) {
        Generation::Plain => false,
        Generation::Budget { range, can_be_off } => {
            let fits =
                |budget| range.contains(&budget) || budget == -1 || (budget == 0 && can_be_off);
            level.is_empty() && budget.is_none_or(fits)
        }
        Generation::Level(levels) => level.is_empty() || levels.contains(&level),
    };
    require(is_accepted, || {
        format!("Thinking is not supported for this model as asked: {thinking}")
    })
}

/// A budget and a level exclude each other.
pub(super) fn budget_or_level(request: &ApiRequest<'_>) -> Check {
    let both = |thinking: &Value| has(thinking, "thinkingBudget") && has(thinking, "thinkingLevel");
    require(!thinking(request).is_some_and(both), || {
        "You can only set only one of thinking budget and thinking level.".to_owned()
    })
}
