//! Alibaba Cloud Model Studio (DashScope), the home of Qwen:
//! <https://www.alibabacloud.com/help/en/model-studio/deep-thinking>.

use super::KnownProvider;
use crate::openai::quirks::{LimitField, Quirks, ThinkingSwitch};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "qwen",
    base_url: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    url_variable: "DASHSCOPE_BASE_URL",
    key_variable: "DASHSCOPE_API_KEY",
    models: &["qwen3.7-max", "qwen3.7-plus", "qwen3-coder-plus"],
    domain: "aliyuncs.com",
    quirks: Quirks {
        limit: LimitField::MaxTokens,
        thinking: ThinkingSwitch::EnableThinking,
        // A forced call needs `enable_thinking: false`, and takes only the name of a tool.
        can_force_calls: false,
        ..Quirks::DEFAULT
    },
    for_model,
    ..KnownProvider::DEFAULT
};

/// Returns true for models that always think or never do.
pub(super) fn has_one_mode(name: &str) -> bool {
    [
        "coder", "instruct", "thinking", "qwq", "qvq", "qwen-max", "qwen2",
    ]
    .iter()
    .any(|part| name.contains(part))
        || name == "qwen3-max"
}

/// Models with one mode reject the switch.
fn for_model(name: &str, quirks: Quirks) -> Quirks {
    match has_one_mode(name) {
        true => Quirks {
            thinking: ThinkingSwitch::None,
            ..quirks
        },
        false => quirks,
    }
}
