//! Perplexity. Its models search the web and have no tools: <https://docs.perplexity.ai/api-reference/sonar-post>.

use super::KnownProvider;
use crate::openai::quirks::{Efforts, LimitField, Quirks, ReasoningReplay, ThinkingSwitch};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "perplexity",
    base_url: "https://api.perplexity.ai",
    url_variable: "PERPLEXITY_BASE_URL",
    key_variable: "PERPLEXITY_API_KEY",
    models: &["sonar-pro", "sonar"],
    domain: "perplexity.ai",
    quirks: Quirks {
        limit: LimitField::MaxTokens,
        reasoning_replay: ReasoningReplay::Never,
        thinking: ThinkingSwitch::None,
        takes_tools: false,
        ..Quirks::DEFAULT
    },
    for_model,
    ..KnownProvider::DEFAULT
};

fn for_model(name: &str, quirks: Quirks) -> Quirks {
    let thinks = ["sonar-reasoning", "sonar-deep-research"];
    match thinks.iter().any(|prefix| name.starts_with(prefix)) {
        true => Quirks {
            thinking: ThinkingSwitch::Effort(Efforts::FROM_MINIMAL),
            ..quirks
        },
        false => quirks,
    }
}
