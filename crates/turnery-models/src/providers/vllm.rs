//! vLLM, a local server.

use super::KnownProvider;

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "vllm",
    base_url: "http://127.0.0.1:8000/v1",
    url_variable: "VLLM_BASE_URL",
    key_variable: "VLLM_API_KEY",
    needs_key: false,
    ..KnownProvider::DEFAULT
};
