//! Implements the Anthropic Messages API, always streaming: <https://docs.anthropic.com/en/api/messages>.

mod request;
mod stream;

use crate::{
    dialect::{ApiDescriptor, ApiDialect},
    model::{ModelInfo, ModelRequest},
    providers,
};
use turnery_engine::CallIds;

/// Dialect of the Anthropic Messages API.
#[derive(Default)]
pub(crate) struct Anthropic {
    enforces_schemas: bool,
}

impl Anthropic {
    /// Creates the dialect for the server at `base_url`.
    pub(crate) fn new(base_url: &str) -> Self {
        Self {
            enforces_schemas: providers::enforces_schemas_at(base_url),
        }
    }
}

impl ApiDialect for Anthropic {
    type Reader = stream::AnthropicReader;
    /// Paths and headers of the Messages API. `Endpoint` drops the `/v1` of the paths if the base URL already
    /// ends in it.
    const API: ApiDescriptor = ApiDescriptor {
        record_name: "anthropic_messages",
        path: "/v1/messages",
        models_path: "/v1/models",
        key_header: ("x-api-key", ""),
        headers: &[("anthropic-version", "2023-06-01")],
        takes_audio: false,
    };

    fn body(&self, info: &ModelInfo, request: &ModelRequest) -> serde_json::Result<Vec<u8>> {
        request::encode_request(info, self.enforces_schemas, request)
    }

    fn reader(&self, info: &ModelInfo, ids: CallIds) -> stream::AnthropicReader {
        stream::AnthropicReader::new(&info.name.provider, &info.name.model, ids)
    }
}
