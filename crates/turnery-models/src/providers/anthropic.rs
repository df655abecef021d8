//! Anthropic.

use super::KnownProvider;
use crate::provider::Api;

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "anthropic",
    base_url: "https://api.anthropic.com",
    url_variable: "ANTHROPIC_BASE_URL",
    key_variable: "ANTHROPIC_API_KEY",
    api: Api::Anthropic,
    offers_default_model: true,
    models: &[
        "claude-sonnet-4-6",
        "claude-opus-4-8",
        "claude-opus-4-6",
        "claude-haiku-4-5",
    ],
    domain: "anthropic.com",
    enforces_schemas: true,
    ..KnownProvider::DEFAULT
};
