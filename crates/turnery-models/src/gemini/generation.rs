//! Knows how the generations of Gemini models differ: <https://ai.google.dev/gemini-api/docs/thinking>,
//! <https://ai.google.dev/gemini-api/docs/gemini-3>.

use crate::{
    model::Thinking,
    model_catalogue::{ThinkingBudget, ThinkingControl, ThinkingLevel},
};

/// Generation of a model, which decides what it accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    /// No thinking: up to 2.0, image models, and other models of the API such as Gemma.
    Plain,
    /// 2.5: thinking with a budget. Unit: tokens.
    Budget {
        min: u32,
        max: u32,
        can_be_off: bool,
    },
    /// Since 3: thinking levels, signed calls, the default temperature, images within function responses.
    Level {
        lowest: &'static str,
        has_medium: bool,
    },
}

impl Generation {
    /// Returns the generation of a model by its name. Unknown Gemini models count as the newest ones.
    pub(super) fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        let Some(rest) = name.strip_prefix("gemini-") else {
            return Self::Plain;
        };
        let (major, minor) = version(rest);
        let is = |kind: &str| rest.split('-').any(|word| word == kind);
        match (major, minor) {
            _ if is("image") || is("tts") => Self::Plain,
            (Some(2), 5) if is("lite") => Self::budget(512, 24_576, true),
            (Some(2), 5) if is("flash") => Self::budget(1, 24_576, true),
            (Some(2), 5) => Self::budget(128, 32_768, false),
            (Some(..=2), _) => Self::Plain,
            // Refused by gemini-3-pro-preview.
            (Some(3), 0) if is("pro") => Self::level("low", false),
            (_, _) if is("lite") => Self::level("minimal", true),
            // Refused by gemini-3.1-pro-preview and gemini-3.7-flash.
            (Some(3), ..=6) if is("flash") => Self::level("minimal", true),
            (Some(_) | None, _) => Self::level("low", true),
        }
    }

    const fn budget(min: u32, max: u32, can_be_off: bool) -> Self {
        Self::Budget {
            min,
            max,
            can_be_off,
        }
    }

    const fn level(lowest: &'static str, has_medium: bool) -> Self {
        Self::Level { lowest, has_medium }
    }

    /// Returns true if the first call of each step must have a signature, results may hold media, and the temperature
    /// should not be changed.
    pub(super) fn is_since_3(self) -> bool {
        match self {
            Self::Plain | Self::Budget { .. } => false,
            Self::Level { .. } => true,
        }
    }

    /// Returns how much the model is asked to think; `None` for models that refuse the question. `max_output` includes
    /// the thinking. Unit: tokens.
    pub(super) fn thinking(self, level: Thinking, max_output: u32) -> Option<ThinkingAmount> {
        let tokens = |asked: u32, min: u32, max: u32| {
            // At least half of the output is left for the response.
            ThinkingAmount::Budget(asked.min(max).min(max_output / 2).max(min))
        };
        let named = |level| Some(ThinkingAmount::Level(level));
        match (self, level) {
            (Self::Plain, _) => None,
            (Self::Budget { .. } | Self::Level { .. }, Thinking::Default) => {
                Some(ThinkingAmount::Default)
            }
            (
                Self::Budget {
                    min,
                    max,
                    can_be_off,
                },
                level,
            ) => Some(match level {
                Thinking::Off if can_be_off => ThinkingAmount::Budget(0),
                Thinking::Off | Thinking::Default => tokens(min, min, max),
                Thinking::Low => tokens(2048, min, max),
                Thinking::Medium => tokens(8192, min, max),
                Thinking::High => tokens(24_576, min, max),
            }),
            // Thinking cannot be switched off.
            (Self::Level { lowest, .. }, Thinking::Off) => named(lowest),
            (Self::Level { .. }, Thinking::Low) => named("low"),
            (
                Self::Level {
                    has_medium: true, ..
                },
                Thinking::Medium,
            ) => named("medium"),
            (Self::Level { .. }, Thinking::Medium | Thinking::High) => named("high"),
        }
    }
}

/// Returns how the thinking of the model with this name is controlled; `None` for models that do not think, and for
/// those of others.
pub(crate) fn thinking_control(model: &str) -> Option<ThinkingControl> {
    match Generation::of(model) {
        Generation::Plain => None,
        Generation::Budget {
            min,
            max,
            can_be_off,
        } => Some(ThinkingControl::Budget(ThinkingBudget {
            min: Some(if can_be_off { 0 } else { min }),
            max: Some(max),
        })),
        Generation::Level { lowest, has_medium } => {
            let lowest = (lowest == "minimal").then_some(ThinkingLevel::Minimal);
            let medium = has_medium.then_some(ThinkingLevel::Medium);
            let levels = lowest
                .into_iter()
                .chain([ThinkingLevel::Low])
                .chain(medium)
                .chain([ThinkingLevel::High]);
            Some(ThinkingControl::Levels(levels.collect()))
        }
    }
}

/// Amount of thinking that a model is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThinkingAmount {
    /// Amount that the model decides.
    Default,
    /// Unit: tokens.
    Budget(u32),
    Level(&'static str),
}

/// Returns the version at the start of a name without its prefix: `(3, 1)` of `3.1-pro`.
fn version(rest: &str) -> (Option<u32>, u32) {
    let word = rest.split('-').next().unwrap_or(rest);
    let (major, minor) = word.split_once('.').unwrap_or((word, "0"));
    (major.parse().ok(), minor.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is asked of a model at the levels off, low, medium and high.
    fn amounts(model: &str) -> [Option<ThinkingAmount>; 4] {
        [
            Thinking::Off,
            Thinking::Low,
            Thinking::Medium,
            Thinking::High,
        ]
        .map(|level| Generation::of(model).thinking(level, 65_536))
    }

    /// Quirk 28: budgets for 2.5, levels since 3. Ranges and levels of the documentation, 22 November 2026.
    // proves: GEMINI-20, GEMINI-28, GEMINI-34, GEMINI-81
    #[test]
    fn thinking_is_clamped_to_what_a_model_accepts() {
        let budgets = |budgets: [u32; 4]| budgets.map(|it| Some(ThinkingAmount::Budget(it)));
        let levels = |levels: [&'static str; 4]| levels.map(|it| Some(ThinkingAmount::Level(it)));
        for (model, expected) in [
            ("gemini-2.5-pro", budgets([128, 2048, 8192, 24_576])),
            ("gemini-2.5-flash", budgets([0, 2048, 8192, 24_576])),
            ("gemini-2.5-flash-lite", budgets([0, 2048, 8192, 24_576])),
            (
                "gemini-3-pro-preview",
                levels(["low", "low", "high", "high"]),
            ),
            (
                "gemini-3.1-pro-preview",
                levels(["low", "low", "medium", "high"]),
            ),
            (
                "gemini-3-flash-preview",
                levels(["minimal", "low", "medium", "high"]),
            ),
            (
                "gemini-3.1-flash-lite",
                levels(["minimal", "low", "medium", "high"]),
            ),
            ("gemini-3.7-flash", levels(["low", "low", "medium", "high"])),
            (
                "gemini-flash-latest",
                levels(["low", "low", "medium", "high"]),
            ),
            ("gemini-4-flash", levels(["low", "low", "medium", "high"])),
            ("gemini-2.0-flash", [None; 4]),
            ("gemini-2.5-flash-image", [None; 4]),
            ("gemma-3-27b-it", [None; 4]),
        ] {
            assert_eq!(amounts(model), expected, "{model}");
        }
    }

    #[test]
    fn budget_leaves_half_of_a_small_output() {
        let asked = |model, level| Generation::of(model).thinking(level, 3000);
        let budget = |tokens| Some(ThinkingAmount::Budget(tokens));
        assert_eq!(asked("gemini-2.5-flash", Thinking::High), budget(1500));
        assert_eq!(asked("gemini-2.5-flash", Thinking::Low), budget(1500));
        assert_eq!(
            Generation::of("gemini-2.5-pro").thinking(Thinking::High, 100),
            budget(128)
        );
    }
}
