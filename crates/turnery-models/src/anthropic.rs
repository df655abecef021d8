//! Implements the Anthropic Messages API, always streaming: <https://docs.anthropic.com/en/api/messages>.

mod request;
mod stream;

use crate::{ModelInfo, ModelRequest, remote_model::ApiDialect, response_accumulator::CallIds};

/// Name of this API in records.
pub(crate) const API_NAME: &str = "anthropic_messages";

/// Path below the base URL, which does not end in `/v1`.
pub(crate) const PATH: &str = "/v1/messages";

/// Dialect of the Anthropic Messages API.
pub(crate) struct Anthropic;

impl ApiDialect for Anthropic {
    type Reader = stream::AnthropicReader;
    const KEY: (&'static str, &'static str) = ("x-api-key", "");
    const HEADERS: &'static [(&'static str, &'static str)] = &[("anthropic-version", "2023-06-01")];

    fn body(&self, info: &ModelInfo, request: &ModelRequest) -> serde_json::Result<Vec<u8>> {
        request::body(info, request)
    }

    fn reader(&self, info: &ModelInfo, ids: CallIds) -> stream::AnthropicReader {
        stream::AnthropicReader::new(&info.name.provider, &info.name.model, ids)
    }
}
