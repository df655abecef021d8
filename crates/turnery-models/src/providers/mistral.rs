//! Mistral.

use super::KnownProvider;
use crate::openai::quirks::{
    CallIdForm, Efforts, LimitField, Quirks, ReasoningField, ThinkingSwitch,
};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "mistral",
    base_url: "https://api.mistral.ai/v1",
    url_variable: "MISTRAL_BASE_URL",
    key_variable: "MISTRAL_API_KEY",
    models: &[
        "devstral-medium-latest",
        "mistral-medium-latest",
        "mistral-large-latest",
    ],
    domain: "mistral.ai",
    quirks: Quirks {
        limit: LimitField::MaxTokens,
        asks_usage: false,
        reasoning_field: ReasoningField::ThinkingParts,
        thinking: ThinkingSwitch::None,
        call_ids: CallIdForm::NineAlphanumerics,
        separates_results: true,
        ..Quirks::DEFAULT
    },
    for_model,
    ..KnownProvider::DEFAULT
};

/// Models that think on request; Magistral always does.
const ADJUSTABLE: &[&str] = &[
    "mistral-small-latest",
    "mistral-small-26",
    "mistral-medium-latest",
    "mistral-medium-26",
    "mistral-medium-3.5",
];

fn for_model(name: &str, quirks: Quirks) -> Quirks {
    match ADJUSTABLE.iter().any(|prefix| name.starts_with(prefix)) {
        true => Quirks {
            thinking: ThinkingSwitch::Effort(Efforts::toggle("high")),
            ..quirks
        },
        false => quirks,
    }
}
