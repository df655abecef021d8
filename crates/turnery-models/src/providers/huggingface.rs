//! Inference Providers of Hugging Face: <https://huggingface.co/docs/inference-providers>.

use super::KnownProvider;
use crate::openai::quirks::{LimitField, Quirks};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "huggingface",
    base_url: "https://router.huggingface.co/v1",
    url_variable: "HF_BASE_URL",
    key_variable: "HF_TOKEN",
    models: &["moonshotai/Kimi-K2.6", "zai-org/GLM-5.1"],
    domain: "huggingface.co",
    quirks: Quirks {
        limit: LimitField::MaxTokens,
        ..Quirks::DEFAULT
    },
    ..KnownProvider::DEFAULT
};
