//! Nebius Token Factory: <https://docs.tokenfactory.nebius.com/api-reference/inference/create-chat-completion>.

use super::KnownProvider;
use crate::openai::quirks::{Efforts, LimitField, Quirks, ThinkingSwitch};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "nebius",
    base_url: "https://api.tokenfactory.nebius.com/v1",
    url_variable: "NEBIUS_BASE_URL",
    key_variable: "NEBIUS_API_KEY",
    models: &[
        "deepseek-ai/DeepSeek-V4-Pro",
        "zai-org/GLM-5.2",
        "openai/gpt-oss-120b",
    ],
    domain: "nebius.com",
    quirks: Quirks {
        limit: LimitField::MaxTokens,
        // The documented values; there is none for off.
        thinking: ThinkingSwitch::Effort(Efforts::from_low("low", "medium", "high")),
        ..Quirks::DEFAULT
    },
    ..KnownProvider::DEFAULT
};
