//! Applies facts about models from the user's configuration. Providers append release dates to names; the
//! facts of a name without a date apply to all its releases.

use crate::model_name::ModelName;
use chrono::NaiveDate;
use std::collections::HashMap;
use turnery_engine::Price;

/// Facts configured by the user. `None` falls back to the built-in facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelOverride {
    /// Size of the context window. Unit: tokens.
    pub context_window: Option<u32>,
    /// Largest response. Unit: tokens.
    pub max_output: Option<u32>,
    /// True if the model accepts images.
    pub images: Option<bool>,
    /// True if the model accepts audio.
    pub audio: Option<bool>,
    /// True if the model accepts documents (PDF).
    pub documents: Option<bool>,
    /// True if the model can reason.
    pub reasoning: Option<bool>,
    /// Price.
    pub price: Option<Price>,
}

impl ModelOverride {
    fn or(self, other: Self) -> Self {
        Self {
            context_window: self.context_window.or(other.context_window),
            max_output: self.max_output.or(other.max_output),
            images: self.images.or(other.images),
            audio: self.audio.or(other.audio),
            documents: self.documents.or(other.documents),
            reasoning: self.reasoning.or(other.reasoning),
            price: self.price.or(other.price),
        }
    }
}

/// Overrides of all models.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelOverrides(HashMap<ModelName, ModelOverride>);

impl ModelOverrides {
    pub(crate) fn extend(&mut self, facts: impl IntoIterator<Item = (ModelName, ModelOverride)>) {
        self.0.extend(facts);
    }

    /// Returns the overrides of a model: those of its exact name, then those of the name without its date.
    pub(crate) fn of(&self, name: &ModelName) -> ModelOverride {
        let exact = |name: &ModelName| self.0.get(name).copied().unwrap_or_default();
        let own = exact(name);
        match strip_date(&name.model) {
            Some(model) => own.or(exact(&ModelName::new(&name.provider, model))),
            None => own,
        }
    }
}

/// Returns the name without a date suffix: `-2026-01-01` or `-20260101`.
pub(crate) fn strip_date(model: &str) -> Option<&str> {
    let forms = [("-0000-00-00", "-%Y-%m-%d"), ("-00000000", "-%Y%m%d")];
    forms.into_iter().find_map(|(shape, form)| {
        let (name, date) = model.split_at_checked(model.len().checked_sub(shape.len())?)?;
        let mut both = date.bytes().zip(shape.bytes());
        let fits = both.all(|(c, like)| c == like || (like == b'0' && c.is_ascii_digit()));
        let is_date = fits && NaiveDate::parse_from_str(date, form).is_ok();
        (is_date && !name.is_empty()).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(model: &str) -> ModelName {
        ModelName::new("openai", model)
    }

    fn price(input: u64) -> Option<Price> {
        Some(Price {
            input,
            ..Price::default()
        })
    }

    #[test]
    fn date_suffix_is_stripped_from_a_name() {
        for (model, name) in [
            ("gpt-5-2026-01-01", Some("gpt-5")),
            ("gpt-5-20260101", Some("gpt-5")),
            ("claude-haiku-4-5-20251001", Some("claude-haiku-4-5")),
            ("gpt-5", None),
            ("gpt-5-2026", None),
            ("gpt-5-2026-13-01", None),
            ("gpt-5-20261301", None),
            ("gpt-5_20260101", None),
            ("gpt-5-2026-1-01", None),
            ("gpt-5-+2026101", None),
            ("gpt-5--026-01-01", None),
            ("-20260101", None),
            ("größe-20260101x", None),
            ("ü20260101", None),
            ("", None),
        ] {
            assert_eq!(strip_date(model), name, "{model}");
        }
    }

    #[test]
    fn dated_name_inherits_override_unless_it_has_its_own() {
        let mut facts = ModelOverrides::default();
        let of = |input, window| ModelOverride {
            price: price(input),
            context_window: window,
            ..ModelOverride::default()
        };
        facts.extend([
            (named("gpt-5"), of(7, Some(1000))),
            (named("gpt-5-2026-01-01"), of(9, None)),
        ]);
        assert_eq!(facts.of(&named("gpt-5-20251111")), of(7, Some(1000)));
        assert_eq!(facts.of(&named("gpt-5-2026-01-01")), of(9, Some(1000)));
        assert_eq!(facts.of(&named("gpt-5")), of(7, Some(1000)));
        // Overrides of a dated name do not apply to the undated one.
        assert_eq!(facts.of(&named("gpt-5-mini")), ModelOverride::default());
        let other = ModelName::new("desk", "gpt-5-20251111");
        assert_eq!(facts.of(&other), ModelOverride::default());
    }
}
