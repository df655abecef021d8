//! Facts: what a person says of models. Providers put the date of a release behind a name; what is said of
//! the name without it holds for all of them.

use crate::ModelName;
use chrono::NaiveDate;
use std::collections::HashMap;
use turnery_engine::Price;

/// What a person says of a model. What is `None` is taken from the model's name, or is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelFacts {
    /// How much it can take in. Unit: tokens.
    pub context_window: Option<u32>,
    /// How much it may answer. Unit: tokens.
    pub max_output: Option<u32>,
    /// Whether it takes pictures.
    pub images: Option<bool>,
    /// Whether it takes recordings.
    pub audio: Option<bool>,
    /// Whether it reasons.
    pub reasoning: Option<bool>,
    /// What it costs. No price is known by a name alone: prices change.
    pub price: Option<Price>,
}

impl ModelFacts {
    fn or(self, other: Self) -> Self {
        Self {
            context_window: self.context_window.or(other.context_window),
            max_output: self.max_output.or(other.max_output),
            images: self.images.or(other.images),
            audio: self.audio.or(other.audio),
            reasoning: self.reasoning.or(other.reasoning),
            price: self.price.or(other.price),
        }
    }
}

/// Of all models.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts(HashMap<ModelName, ModelFacts>);

impl Facts {
    pub(crate) fn extend(&mut self, facts: impl IntoIterator<Item = (ModelName, ModelFacts)>) {
        self.0.extend(facts);
    }

    pub(crate) fn have_prices(&self) -> bool {
        self.0.values().any(|said| said.price.is_some())
    }

    /// Of that model: what is said of its very name, then of the name without its date.
    pub(crate) fn of(&self, name: &ModelName) -> ModelFacts {
        let said = |name: &ModelName| self.0.get(name).copied().unwrap_or_default();
        let own = said(name);
        match undated(&name.model) {
            Some(model) => own.or(said(&ModelName {
                provider: name.provider.clone(),
                model: model.to_owned(),
            })),
            None => own,
        }
    }
}

/// The name without a date behind it: `-2026-01-01` or `-20260101`.
fn undated(model: &str) -> Option<&str> {
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
        ModelName {
            provider: "openai".to_owned(),
            model: model.to_owned(),
        }
    }

    fn price(input: u64) -> Option<Price> {
        Some(Price {
            input,
            ..Price::default()
        })
    }

    #[test]
    fn a_date_is_no_part_of_a_name() {
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
            assert_eq!(undated(model), name, "{model}");
        }
    }

    #[test]
    fn what_is_said_of_a_name_holds_for_its_dates_unless_they_have_their_own() {
        let mut facts = Facts::default();
        let of = |input, window| ModelFacts {
            price: price(input),
            context_window: window,
            ..ModelFacts::default()
        };
        facts.extend([
            (named("gpt-5"), of(7, Some(1000))),
            (named("gpt-5-2026-01-01"), of(9, None)),
        ]);
        assert_eq!(facts.of(&named("gpt-5-20251111")), of(7, Some(1000)));
        assert_eq!(facts.of(&named("gpt-5-2026-01-01")), of(9, Some(1000)));
        assert_eq!(facts.of(&named("gpt-5")), of(7, Some(1000)));
        // Nothing of a dated one holds for the name.
        assert_eq!(facts.of(&named("gpt-5-mini")), ModelFacts::default());
        let other = ModelName {
            provider: "desk".to_owned(),
            ..named("gpt-5-20251111")
        };
        assert_eq!(facts.of(&other), ModelFacts::default());
    }
}
