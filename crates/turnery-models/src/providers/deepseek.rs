//! DeepSeek.

use super::KnownProvider;
use crate::openai::quirks::{LimitField, Quirks};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "deepseek",
    base_url: "https://api.deepseek.com/v1",
    url_variable: "DEEPSEEK_BASE_URL",
    key_variable: "DEEPSEEK_API_KEY",
    models: &["deepseek-chat", "deepseek-reasoner"],
    domain: "deepseek.com",
    quirks: Quirks {
        limit: LimitField::MaxTokens,
        ..Quirks::DEFAULT
    },
    ..KnownProvider::DEFAULT
};
