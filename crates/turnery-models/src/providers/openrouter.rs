//! OpenRouter. Its list of models is public, so a key is checked at its own endpoint.

use super::KnownProvider;
use crate::{
    anthropic::model_rules,
    openai::{
        model_families::is_openai,
        quirks::{CallIdForm, Efforts, Quirks, ReasoningField, ThinkingSwitch},
    },
};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "openrouter",
    base_url: "https://openrouter.ai/api/v1",
    url_variable: "OPENROUTER_BASE_URL",
    key_variable: "OPENROUTER_API_KEY",
    models: &["openrouter/auto"],
    takes_documents: true,
    domain: "openrouter.ai",
    check_path: Some("/key"),
    quirks: Quirks {
        reasoning_field: ReasoningField::Reasoning,
        thinking: ThinkingSwitch::ReasoningEffort(Efforts::WITH_NONE),
        ..Quirks::DEFAULT
    },
    for_model,
    ..KnownProvider::DEFAULT
};

/// Other models than Claude cache by themselves, and some of their hosts reject the marks.
fn for_model(name: &str, quirks: Quirks) -> Quirks {
    Quirks {
        cache_marks: model_rules::is_claude(name),
        call_ids: match is_openai(name) {
            true => CallIdForm::UpTo40,
            false => quirks.call_ids,
        },
        ..quirks
    }
}
