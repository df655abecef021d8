//! xAI: <https://docs.x.ai/docs/guides/reasoning>.

use super::KnownProvider;
use crate::openai::quirks::{Efforts, LimitField, Quirks, ReasoningReplay, ThinkingSwitch};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "xai",
    base_url: "https://api.x.ai/v1",
    url_variable: "XAI_BASE_URL",
    key_variable: "XAI_API_KEY",
    models: &["grok-4.5", "grok-4.3", "grok-build-0.1"],
    domain: "x.ai",
    quirks: Quirks {
        limit: LimitField::MaxCompletionTokens,
        reasoning_replay: ReasoningReplay::Never,
        // Most models decide themselves, and reject an effort.
        thinking: ThinkingSwitch::None,
        ..Quirks::DEFAULT
    },
    for_model,
    ..KnownProvider::DEFAULT
};

fn for_model(name: &str, quirks: Quirks) -> Quirks {
    let efforts = match name {
        _ if name.starts_with("grok-4.3") => Efforts::WITH_NONE,
        _ if name.starts_with("grok-4.5") => Efforts::FROM_LOW,
        _ if name.starts_with("grok-3-mini") => Efforts {
            off: Some("low"),
            ..Efforts::from_low("low", "high", "high")
        },
        _ => return quirks,
    };
    Quirks {
        thinking: ThinkingSwitch::Effort(efforts),
        ..quirks
    }
}
