//! LM Studio, a local server.

use super::KnownProvider;

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "lmstudio",
    base_url: "http://127.0.0.1:1234/v1",
    url_variable: "LMSTUDIO_BASE_URL",
    key_variable: "LMSTUDIO_API_KEY",
    needs_key: false,
    ..KnownProvider::DEFAULT
};
