//! Maps thinking levels to the reasoning efforts that a model accepts (quirk 34).

use crate::Thinking;
use serde::Serialize;

/// Reasoning effort, from the smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Effort {
    /// No reasoning.
    #[serde(rename = "none")]
    Off,
    Minimal,
    Low,
    Medium,
    High,
}

use Effort::{High, Low, Medium, Minimal, Off};

/// Efforts of the older reasoning models, which cannot be made not to reason.
const ALWAYS_ON: &[Effort] = &[Low, Medium, High];

/// Efforts of a model that is not in the table.
const DEFAULT: &[Effort] = &[Off, Low, Medium, High];

/// Families by the start of a name and a later part of it, with the efforts that they accept in ascending order. The
/// first matching row applies. Sources: error messages of the API, models.dev, profiles of pydantic-ai.
const FAMILIES: &[(&str, &str, &[Effort])] = &[
    ("gpt-5-pro", "", &[High]),
    ("gpt-5-codex", "", ALWAYS_ON),
    ("gpt-5.1-codex", "", ALWAYS_ON),
    ("gpt-5.2-codex", "", ALWAYS_ON),
    ("gpt-5.", "-chat", &[Medium]),
    ("gpt-5.", "-pro", &[Medium, High]),
    ("gpt-5.", "", DEFAULT),
    ("gpt-5", "", &[Minimal, Low, Medium, High]),
    ("gpt-oss", "", ALWAYS_ON),
    ("o3", "-deep-research", &[Medium]),
    ("o4", "-deep-research", &[Medium]),
    ("o1", "", ALWAYS_ON),
    ("o3", "", ALWAYS_ON),
    ("o4", "", ALWAYS_ON),
];

/// Returns the accepted effort that is nearest to `level`, rather a larger one than a smaller one; `None` leaves it to
/// the model.
pub(super) fn effort(model: &str, level: Thinking) -> Option<Effort> {
    let wanted = match level {
        Thinking::Default => return None,
        Thinking::Off => Off,
        Thinking::Low => Low,
        Thinking::Medium => Medium,
        Thinking::High => High,
    };
    let name = model.rsplit('/').next().unwrap_or(model);
    let accepted = FAMILIES
        .iter()
        .find(|(start, part, _)| name.starts_with(start) && name.contains(part))
        .map_or(DEFAULT, |(_, _, accepted)| accepted);
    let enough = accepted.iter().find(|effort| **effort >= wanted);
    enough.or(accepted.last()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quirk 34.
    // proves: RESPONSES-34, RESPONSES-81
    #[test]
    fn efforts_are_clamped_to_what_a_model_accepts() {
        for (model, off, low, medium, high) in [
            ("o3", Low, Low, Medium, High),
            ("o4-mini-2025-04-16", Low, Low, Medium, High),
            ("o3-deep-research", Medium, Medium, Medium, Medium),
            ("gpt-5", Minimal, Low, Medium, High),
            ("gpt-5-mini-2025-08-07", Minimal, Low, Medium, High),
            ("gpt-5-codex", Low, Low, Medium, High),
            ("gpt-5-pro", High, High, High, High),
            ("gpt-5.1", Off, Low, Medium, High),
            ("gpt-5.1-codex-max", Low, Low, Medium, High),
            ("gpt-5.2-codex", Low, Low, Medium, High),
            ("gpt-5.3-codex", Off, Low, Medium, High),
            ("gpt-5.2-chat-latest", Medium, Medium, Medium, Medium),
            ("gpt-5.4-pro", Medium, Medium, Medium, High),
            ("openai/gpt-oss-120b", Low, Low, Medium, High),
            ("gpt-6", Off, Low, Medium, High),
        ] {
            let levels = [
                (Thinking::Default, None),
                (Thinking::Off, Some(off)),
                (Thinking::Low, Some(low)),
                (Thinking::Medium, Some(medium)),
                (Thinking::High, Some(high)),
            ];
            for (level, expected) in levels {
                assert_eq!(effort(model, level), expected, "{model} {level:?}");
            }
        }
    }
}
