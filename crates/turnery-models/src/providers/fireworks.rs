//! Fireworks AI: <https://docs.fireworks.ai/guides/reasoning>.

use super::KnownProvider;
use crate::openai::quirks::{Efforts, LimitField, Quirks};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "fireworks",
    base_url: "https://api.fireworks.ai/inference/v1",
    url_variable: "FIREWORKS_BASE_URL",
    key_variable: "FIREWORKS_API_KEY",
    models: &[
        "accounts/fireworks/models/kimi-k2p7-code",
        "accounts/fireworks/models/glm-5p2",
        "accounts/fireworks/models/gpt-oss-120b",
    ],
    domain: "fireworks.ai",
    quirks: Quirks {
        limit: LimitField::MaxTokens,
        ..Quirks::DEFAULT
    },
    for_model,
    ..KnownProvider::DEFAULT
};

/// MiniMax models always think.
fn for_model(name: &str, quirks: Quirks) -> Quirks {
    match name.starts_with("minimax") {
        true => quirks.with_efforts(Efforts::FROM_LOW),
        false => quirks,
    }
}
