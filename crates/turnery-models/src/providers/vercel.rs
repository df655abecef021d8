//! Vercel AI Gateway: <https://vercel.com/docs/ai-gateway/sdks-and-apis/openai-chat-completions/advanced>.

use super::KnownProvider;
use crate::openai::quirks::{Efforts, Quirks, ReasoningField, ThinkingSwitch};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "vercel",
    base_url: "https://ai-gateway.vercel.sh/v1",
    url_variable: "AI_GATEWAY_BASE_URL",
    key_variable: "AI_GATEWAY_API_KEY",
    models: &["anthropic/claude-sonnet-4.6", "openai/gpt-5.1-thinking"],
    domain: "vercel.sh",
    quirks: Quirks {
        reasoning_field: ReasoningField::Reasoning,
        thinking: ThinkingSwitch::ReasoningEffort(Efforts::WITH_NONE),
        ..Quirks::DEFAULT
    },
    ..KnownProvider::DEFAULT
};
