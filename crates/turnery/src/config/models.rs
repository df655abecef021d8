//! Reads `[models."provider/model"]`: facts that a model's name does not tell.

use super::values::Money;
use schemars::JsonSchema;
use serde::Deserialize;
use std::num::NonZeroU32;
use turnery_engine::Price;
use turnery_models::ModelOverride;

/// One model.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelEntry {
    /// Size of the context window, in tokens. Older messages are summarised only where this is known.
    context_window: Option<NonZeroU32>,
    /// Maximum length of a response, in tokens.
    max_output: Option<NonZeroU32>,
    /// Whether the model accepts pictures.
    images: Option<bool>,
    /// Whether the model accepts recordings. For OpenAI-compatible servers only: the other API accepts none.
    audio: Option<bool>,
    /// True if the model accepts documents (PDF).
    documents: Option<bool>,
    /// Whether the model can be told how much to think.
    reasoning: Option<bool>,
    /// Price of a million tokens, in the money of `limits.cost`.
    price: Option<PriceEntry>,
}

/// Price of a million tokens. Needs at least input and output.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PriceEntry {
    /// Input that is in no cache.
    input: Option<Money>,
    /// Output, including reasoning.
    output: Option<Money>,
    /// Input read from a cache; default: the same as `input`.
    cache_read: Option<Money>,
    /// Input written to a cache; default: the same as `input`.
    cache_write: Option<Money>,
}

impl ModelEntry {
    /// Returns true if there is a price that lacks `input` or `output`.
    pub(super) fn is_price_incomplete(&self) -> bool {
        let price = self.price.as_ref();
        price.is_some_and(|price| price.to_price().is_none())
    }

    /// Returns what is known of the model.
    pub(crate) fn to_override(&self) -> ModelOverride {
        ModelOverride {
            context_window: self.context_window.map(NonZeroU32::get),
            max_output: self.max_output.map(NonZeroU32::get),
            images: self.images,
            audio: self.audio,
            documents: self.documents,
            reasoning: self.reasoning,
            price: self.price.as_ref().and_then(PriceEntry::to_price),
        }
    }
}

impl PriceEntry {
    fn to_price(&self) -> Option<Price> {
        let (input, output) = (self.input?.0, self.output?.0);
        Some(Price {
            input,
            output,
            cache_read: self.cache_read.map_or(input, |price| price.0),
            cache_write: self.cache_write.map_or(input, |price| price.0),
            tiers: &[],
        })
    }
}
