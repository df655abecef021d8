//! NVIDIA NIM: <https://docs.api.nvidia.com/nim/reference/llm-apis>. Each model has its own parameters.

use super::KnownProvider;
use crate::openai::quirks::{Efforts, LimitField, Quirks, ThinkingSwitch};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "nvidia",
    base_url: "https://integrate.api.nvidia.com/v1",
    url_variable: "NVIDIA_BASE_URL",
    key_variable: "NVIDIA_API_KEY",
    models: &[
        "moonshotai/kimi-k2.6",
        "nvidia/nemotron-3-super-120b-a12b",
        "openai/gpt-oss-120b",
    ],
    domain: "nvidia.com",
    quirks: Quirks {
        limit: LimitField::MaxTokens,
        thinking: ThinkingSwitch::TemplateArgument,
        ..Quirks::DEFAULT
    },
    for_model,
    ..KnownProvider::DEFAULT
};

fn for_model(name: &str, quirks: Quirks) -> Quirks {
    let efforts = match name {
        _ if name.starts_with("gpt-oss") => Efforts::FROM_LOW,
        _ if name.starts_with("kimi-k2.") => Efforts::WITH_NONE,
        _ if name.starts_with("deepseek-v4") => Efforts {
            off: Some("none"),
            ..Efforts::from_low("high", "high", "max")
        },
        _ if name.starts_with("mistral-small-4") => Efforts::toggle("high"),
        _ => return quirks,
    };
    Quirks {
        thinking: ThinkingSwitch::Effort(efforts),
        ..quirks
    }
}
