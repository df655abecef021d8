//! Mistral.

use super::KnownProvider;
use crate::openai::quirks::{LimitField, Quirks};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "mistral",
    base_url: "https://api.mistral.ai/v1",
    url_variable: "MISTRAL_BASE_URL",
    key_variable: "MISTRAL_API_KEY",
    models: &[
        "devstral-medium-latest",
        "mistral-medium-latest",
        "mistral-large-latest",
    ],
    domain: "mistral.ai",
    quirks: Quirks {
        limit: LimitField::MaxTokens,
        asks_usage: false,
        reasoning_field: None,
        is_mistral: true,
        ..Quirks::DEFAULT
    },
    ..KnownProvider::DEFAULT
};
