//! SambaNova Cloud: <https://docs.sambanova.ai/docs/en/features/openai-compatibility>.

use super::KnownProvider;
use crate::openai::quirks::{Efforts, LimitField, Quirks, ThinkingSwitch};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "sambanova",
    base_url: "https://api.sambanova.ai/v1",
    url_variable: "SAMBANOVA_BASE_URL",
    key_variable: "SAMBANOVA_API_KEY",
    models: &["gpt-oss-120b", "Meta-Llama-3.3-70B-Instruct"],
    domain: "sambanova.ai",
    quirks: Quirks {
        limit: LimitField::MaxTokens,
        thinking: ThinkingSwitch::TemplateArgument,
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
