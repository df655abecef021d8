//! Together AI: <https://docs.together.ai/docs/inference/chat/reasoning>.

use super::KnownProvider;
use crate::openai::quirks::{Efforts, LimitField, Quirks, ReasoningField, ThinkingSwitch};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "together",
    base_url: "https://api.together.ai/v1",
    url_variable: "TOGETHER_BASE_URL",
    key_variable: "TOGETHER_API_KEY",
    models: &[
        "moonshotai/Kimi-K2.7-Code",
        "zai-org/GLM-5.2",
        "openai/gpt-oss-120b",
    ],
    domain: "together.ai",
    other_domains: &["together.xyz"],
    quirks: Quirks {
        limit: LimitField::MaxTokens,
        reasoning_field: ReasoningField::Reasoning,
        thinking: ThinkingSwitch::ReasoningEnabled,
        ..Quirks::DEFAULT
    },
    for_model,
    ..KnownProvider::DEFAULT
};

fn for_model(name: &str, quirks: Quirks) -> Quirks {
    match name.starts_with("gpt-oss") {
        true => Quirks {
            thinking: ThinkingSwitch::Effort(Efforts::FROM_LOW),
            ..quirks
        },
        false => quirks,
    }
}
