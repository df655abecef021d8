//! DeepSeek: <https://api-docs.deepseek.com/guides/thinking_mode>.

use super::KnownProvider;
use crate::openai::quirks::{Efforts, LimitField, Quirks, ThinkingHistory, ThinkingSwitch};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "deepseek",
    base_url: "https://api.deepseek.com/v1",
    url_variable: "DEEPSEEK_BASE_URL",
    key_variable: "DEEPSEEK_API_KEY",
    models: &["deepseek-v4-pro", "deepseek-v4-flash"],
    domain: "deepseek.com",
    groups_calls: true,
    quirks: Quirks {
        limit: LimitField::MaxTokens,
        thinking: ThinkingSwitch::Type {
            // `low` and `medium` count as `high`.
            efforts: Efforts::from_low("low", "medium", "high"),
            can_disable: true,
            history: ThinkingHistory::Default,
        },
        ..Quirks::DEFAULT
    },
    for_model,
    ..KnownProvider::DEFAULT
};

/// The names before V4 stand for one mode each.
fn for_model(name: &str, quirks: Quirks) -> Quirks {
    match name {
        "deepseek-chat" | "deepseek-reasoner" => Quirks {
            thinking: ThinkingSwitch::None,
            ..quirks
        },
        _ => quirks,
    }
}
