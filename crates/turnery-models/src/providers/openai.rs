//! OpenAI.

use super::KnownProvider;
use crate::openai::quirks::{LimitField, Quirks};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "openai",
    base_url: "https://api.openai.com/v1",
    url_variable: "OPENAI_BASE_URL",
    key_variable: "OPENAI_API_KEY",
    offers_default_model: true,
    models: &["gpt-5.1", "gpt-5", "gpt-5-mini", "gpt-4.1"],
    domain: "openai.com",
    enforces_schemas: true,
    quirks: Quirks {
        limit: LimitField::MaxCompletionTokens,
        reasoning_field: None,
        cache_key: true,
        ..Quirks::DEFAULT
    },
    ..KnownProvider::DEFAULT
};
