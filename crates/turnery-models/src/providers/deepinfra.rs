//! DeepInfra: <https://docs.deepinfra.com/chat/reasoning>.

use super::KnownProvider;
use crate::openai::quirks::{LimitField, Quirks};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "deepinfra",
    base_url: "https://api.deepinfra.com/v1/openai",
    url_variable: "DEEPINFRA_BASE_URL",
    key_variable: "DEEPINFRA_API_KEY",
    models: &[
        "deepseek-ai/DeepSeek-V4-Pro",
        "moonshotai/Kimi-K2.7-Code",
        "zai-org/GLM-5.2",
    ],
    domain: "deepinfra.com",
    quirks: Quirks {
        limit: LimitField::MaxTokens,
        ..Quirks::DEFAULT
    },
    ..KnownProvider::DEFAULT
};
