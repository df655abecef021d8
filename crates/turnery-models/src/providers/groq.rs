//! Groq: <https://console.groq.com/docs/reasoning>.

use super::KnownProvider;
use crate::openai::quirks::{
    Efforts, LimitField, Quirks, ReasoningField, ReasoningReplay, ThinkingSwitch,
};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "groq",
    base_url: "https://api.groq.com/openai/v1",
    url_variable: "GROQ_BASE_URL",
    key_variable: "GROQ_API_KEY",
    models: &[
        "openai/gpt-oss-120b",
        "openai/gpt-oss-20b",
        "qwen/qwen3-32b",
        "llama-3.3-70b-versatile",
    ],
    domain: "groq.com",
    quirks: Quirks {
        limit: LimitField::MaxCompletionTokens,
        // Unknown fields of a message are rejected, reasoning among them.
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
            ..quirks
        };
    }
    if name.starts_with("qwen3") {
        return Quirks {
            thinking: ThinkingSwitch::Effort(Efforts::toggle("default")),
            // The usual format puts reasoning into the text, and is rejected together with tools.
            reasoning_format: Some("parsed"),
            ..quirks
        };
    }
    quirks
}
