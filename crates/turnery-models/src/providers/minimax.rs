//! MiniMax, by its API in the format of Anthropic, which is the one that separates reasoning from text:
//! <https://platform.minimax.io/docs/api-reference/text-anthropic-api>.

use super::KnownProvider;
use crate::{
    openai::quirks::{LimitField, Quirks, ThinkingSwitch},
    provider::Api,
};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "minimax",
    base_url: "https://api.minimax.io/anthropic",
    url_variable: "MINIMAX_BASE_URL",
    key_variable: "MINIMAX_API_KEY",
    api: Api::Anthropic,
    models: &["MiniMax-M3", "MiniMax-M2.7"],
    domain: "minimax.io",
    other_domains: &["minimaxi.com"],
    quirks: Quirks {
        limit: LimitField::MaxTokens,
        thinking: ThinkingSwitch::None,
        can_force_calls: false,
        ..Quirks::DEFAULT
    },
    ..KnownProvider::DEFAULT
};
