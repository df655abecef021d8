//! Cerebras: <https://inference-docs.cerebras.ai/capabilities/reasoning>.

use super::KnownProvider;
use crate::openai::quirks::{
    Efforts, LimitField, Quirks, ReasoningField, ReasoningReplay, ThinkingSwitch,
};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "cerebras",
    base_url: "https://api.cerebras.ai/v1",
    url_variable: "CEREBRAS_BASE_URL",
    key_variable: "CEREBRAS_API_KEY",
    models: &["gpt-oss-120b", "zai-glm-4.7"],
    domain: "cerebras.ai",
    quirks: Quirks {
        limit: LimitField::MaxCompletionTokens,
        reasoning_replay: ReasoningReplay::Never,
        reasoning_field: ReasoningField::Reasoning,
        thinking: ThinkingSwitch::None,
        ..Quirks::DEFAULT
    },
    for_model,
    ..KnownProvider::DEFAULT
};

fn for_model(name: &str, quirks: Quirks) -> Quirks {
    if name.starts_with("gpt-oss") {
        return Quirks {
            thinking: ThinkingSwitch::Effort(Efforts::FROM_LOW),
            // The Harmony format has no forced call.
            can_force_calls: false,
            ..quirks
        };
    }
    if name.starts_with("zai-glm") {
        return Quirks {
            thinking: ThinkingSwitch::Effort(Efforts::ONLY_NONE),
            ..quirks
        };
    }
    quirks
}
