//! Anthropic Messages: <https://docs.anthropic.com/en/api/messages>, always as a stream.

mod request;
mod stream;

use crate::{ModelInfo, ModelRequest, answer::CallIds, remote::Dialect};

/// The name of this API in records.
pub(crate) const API: &str = "anthropic_messages";

/// Below the base URL, which has no `/v1`.
pub(crate) const PATH: &str = "/v1/messages";

/// Speaks Anthropic Messages.
pub(crate) struct Anthropic;

impl Dialect for Anthropic {
    type Reader = stream::Reader;
    const KEY: (&'static str, &'static str) = ("x-api-key", "");
    const HEADERS: &'static [(&'static str, &'static str)] = &[("anthropic-version", "2023-06-01")];

    fn body(&self, info: &ModelInfo, request: &ModelRequest) -> serde_json::Result<Vec<u8>> {
        request::body(info, request)
    }

    fn reader(&self, info: &ModelInfo, ids: CallIds) -> stream::Reader {
        stream::Reader::new(&info.name.provider, &info.name.model, ids)
    }
}
