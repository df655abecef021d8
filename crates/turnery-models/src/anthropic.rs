//! Implements the Anthropic Messages API, always streaming: <https://docs.anthropic.com/en/api/messages>.

mod call_ids;
mod continuation;
pub(crate) mod model_rules;
mod request;
mod stream;
mod thinking;

use crate::{
    dialect::{ApiDescriptor, ApiDialect},
    history::ReasoningScope,
    model::{ModelInfo, ModelRequest},
    providers,
    schema_dialect::{DialectSchema, SchemaDialect},
};
use model_rules::ModelRules;
use turnery_engine::{CallIds, Response};

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

const VERSION_HEADER: (&str, &str) = ("anthropic-version", "2023-06-01");

/// Headers for models that think between calls only if asked to (quirk 18).
const INTERLEAVED_HEADERS: &[(&str, &str)] = &[
    VERSION_HEADER,
    ("anthropic-beta", "interleaved-thinking-2025-05-14"),
];

impl ApiDialect for Anthropic {
    type Reader = stream::AnthropicReader;
    /// Paths and headers of the Messages API. `Endpoint` drops the `/v1` of the paths if the base URL already
    /// ends in it.
    const API: ApiDescriptor = ApiDescriptor {
        record_name: "anthropic_messages",
        path: "/v1/messages",
        models_path: "/v1/models",
        key_header: ("x-api-key", ""),
        headers: &[VERSION_HEADER],
        takes_audio: false,
    };

    fn schema_dialect(&self, _model: &str) -> SchemaDialect {
        SchemaDialect::Anthropic
    }

    fn reasoning_scope(&self, info: &ModelInfo) -> ReasoningScope {
        ModelRules::of(&info.name.model).reasoning_scope()
    }

    fn body(
        &self,
        info: &ModelInfo,
        request: &ModelRequest,
        schemas: &[DialectSchema],
    ) -> serde_json::Result<Vec<u8>> {
        request::encode_request(info, self.enforces_schemas, request, schemas)
    }

    fn headers(&self, info: &ModelInfo) -> &'static [(&'static str, &'static str)] {
        match info.reasoning && ModelRules::of(&info.name.model).needs_interleaved_header {
            true => INTERLEAVED_HEADERS,
            false => Self::API.headers,
        }
    }

    fn continuation(&self, info: &ModelInfo, body: &[u8], response: &Response) -> Option<Vec<u8>> {
        continuation::continue_request(ModelRules::of(&info.name.model), body, response)
    }

    fn reader(&self, info: &ModelInfo, ids: CallIds) -> stream::AnthropicReader {
        stream::AnthropicReader::new(&info.name.provider, &info.name.model, ids)
    }
}
