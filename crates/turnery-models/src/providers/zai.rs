//! Z.ai, the maker of GLM: <https://docs.z.ai/guides/capabilities/thinking-mode>.

use super::KnownProvider;
use crate::openai::quirks::{Efforts, LimitField, Quirks, ThinkingHistory, ThinkingSwitch};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "zai",
    base_url: "https://api.z.ai/api/paas/v4",
    url_variable: "ZAI_BASE_URL",
    key_variable: "ZAI_API_KEY",
    models: &["glm-5.2", "glm-5.1", "glm-4.7"],
    domain: "z.ai",
    other_domains: &["bigmodel.cn"],
    quirks: Quirks {
        limit: LimitField::MaxTokens,
        thinking: ThinkingSwitch::None,
        // Only `auto` is documented.
        can_forbid_calls: false,
        can_force_calls: false,
        ..Quirks::DEFAULT
    },
    for_model,
    ..KnownProvider::DEFAULT
};

fn for_model(name: &str, quirks: Quirks) -> Quirks {
    let thinks = ["glm-4.5", "glm-4.6", "glm-4.7", "glm-5"];
    if !thinks.iter().any(|prefix| name.starts_with(prefix)) {
        return quirks;
    }
    let always_thinks = name.starts_with("glm-5.3");
    let efforts = match name {
        _ if always_thinks => Efforts {
            off: Some("low"),
            ..Efforts::from_low("low", "high", "max")
        },
        _ if name.starts_with("glm-5.2") => Efforts::from_low("low", "high", "max"),
        _ => Efforts::UNAVAILABLE,
    };
    Quirks {
        thinking: ThinkingSwitch::Type {
            efforts,
            can_disable: !always_thinks,
            history: ThinkingHistory::NotCleared,
        },
        ..quirks
    }
}
