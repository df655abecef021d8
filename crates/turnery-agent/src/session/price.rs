//! Looks up the token price of a model.

use turnery_engine::Price;
use turnery_models::{ModelName, ModelRegistry};

/// Error of a model without a known price in a prompt with a cost limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no price is known for {model}, so the cost limit cannot be enforced: say what a million of its \
     tokens cost in config.toml ([models.\"{model}\"] price = {{ input = 3.0, output = 15.0 }}), \
     choose another model, or leave out the limit (--max-cost, limits.cost)"
)]
pub struct UnknownPriceError {
    /// The model.
    pub model: ModelName,
}

/// Returns the price of a model's tokens from the model registry. Fails if no price is known.
pub fn known_price(models: &ModelRegistry, name: &ModelName) -> Result<Price, UnknownPriceError> {
    let model = name.clone();
    models.price(name).ok_or(UnknownPriceError { model })
}
