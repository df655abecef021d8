//! Moonshot AI, the maker of Kimi: <https://platform.moonshot.ai/docs/api/chat>.

use super::KnownProvider;
use crate::{
    openai::quirks::{Efforts, LimitField, Quirks, ThinkingHistory, ThinkingSwitch},
    schema_dialect::SchemaDialect,
};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "moonshot",
    base_url: "https://api.moonshot.ai/v1",
    url_variable: "MOONSHOT_BASE_URL",
    key_variable: "MOONSHOT_API_KEY",
    models: &["kimi-k3", "kimi-k2.7-code", "kimi-k2.6"],
    domain: "moonshot.ai",
    other_domains: &["moonshot.cn", "kimi.com"],
    schemas: Some(SchemaDialect::Moonshot),
    quirks: Quirks {
        limit: LimitField::MaxTokens,
        thinking: ThinkingSwitch::None,
        cache_key: true,
        ..Quirks::DEFAULT
    },
    for_model,
    ..KnownProvider::DEFAULT
};

fn for_model(name: &str, quirks: Quirks) -> Quirks {
    let (can_disable, history) = match name {
        // Thinks always; takes an effort, but not together with `thinking`.
        _ if name.starts_with("kimi-k3") => {
            return Quirks {
                thinking: ThinkingSwitch::Effort(Efforts {
                    off: Some("low"),
                    ..Efforts::from_low("low", "high", "max")
                }),
                can_force_calls: false,
                ..quirks
            };
        }
        _ if name.starts_with("kimi-k2.5") => (true, ThinkingHistory::Default),
        _ if name.starts_with("kimi-k2.6") => (true, ThinkingHistory::KeepAll),
        _ if name.starts_with("kimi-k2.7") => (false, ThinkingHistory::KeepAll),
        _ => return quirks,
    };
    Quirks {
        thinking: ThinkingSwitch::Type {
            efforts: Efforts::UNAVAILABLE,
            can_disable,
            history,
        },
        can_force_calls: can_disable,
        ..quirks
    }
}
