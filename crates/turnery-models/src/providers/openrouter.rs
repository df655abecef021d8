//! OpenRouter. Its list of models is public, so a key is checked at its own endpoint.

use super::KnownProvider;
use crate::openai::quirks::{Quirks, ReasoningField};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "openrouter",
    base_url: "https://openrouter.ai/api/v1",
    url_variable: "OPENROUTER_BASE_URL",
    key_variable: "OPENROUTER_API_KEY",
    models: &["openrouter/auto"],
    domain: "openrouter.ai",
    check_path: Some("/key"),
    quirks: Quirks {
        reasoning_field: Some(ReasoningField::Reasoning),
        ..Quirks::DEFAULT
    },
    ..KnownProvider::DEFAULT
};
