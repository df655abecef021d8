//! The server of llama.cpp.

use super::KnownProvider;

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "llamacpp",
    base_url: "http://127.0.0.1:8080/v1",
    url_variable: "LLAMACPP_BASE_URL",
    key_variable: "LLAMACPP_API_KEY",
    needs_key: false,
    ..KnownProvider::DEFAULT
};
