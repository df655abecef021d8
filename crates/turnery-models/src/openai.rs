//! Implements OpenAI Chat Completions, always streaming:
//! <https://platform.openai.com/docs/api-reference/chat>. Differences between compatible servers are in
//! `quirks`.

mod call_id_map;
mod chunk;
mod messages;
pub(crate) mod model_families;
pub(crate) mod quirks;
mod reasoning_details;
mod replayed_reasoning;
mod request;
mod stream;
mod thinking_params;
mod tool_calls;
mod usage;

use crate::{
    dialect::{ApiDescriptor, ApiDialect},
    history::ReasoningScope,
    model::{ModelInfo, ModelRequest},
    providers,
    schema_dialect::{DialectSchema, SchemaDialect},
};
use quirks::Quirks;
use turnery_engine::CallIds;

/// Dialect of Chat Completions.
pub(crate) struct OpenAi {
    quirks: Quirks,
    enforces_schemas: bool,
    /// Dialect of the server; `None` if it depends on the model.
    schemas: Option<SchemaDialect>,
}

impl OpenAi {
    /// Creates the dialect of `model` for the server at `base_url`. If the user chose the output limit, it is sent.
    pub(crate) fn new(base_url: &str, model: &str, has_user_limit: bool) -> Self {
        let quirks = providers::quirks_at(base_url, model);
        Self {
            quirks: match has_user_limit {
                true => quirks.with_user_limit(),
                false => quirks,
            },
            enforces_schemas: providers::enforces_schemas_at(base_url),
            schemas: providers::schemas_at(base_url),
        }
    }

    /// Returns the dialect for Ollama, which no address but the default one reveals.
    pub(crate) fn for_ollama(mut self, model: &str) -> Self {
        self.quirks.thinking = providers::thinking_on_ollama(model);
        self
    }
}

impl ApiDialect for OpenAi {
    type Reader = stream::OpenAiReader;
    /// Chat Completions below a base URL that ends in `/v1`.
    const API: ApiDescriptor = ApiDescriptor {
        record_name: "openai_chat_completions",
        path: "/chat/completions",
        models_path: "/models",
        key_header: ("authorization", "Bearer "),
        headers: &[],
        takes_audio: true,
    };

    fn schema_dialect(&self, model: &str) -> SchemaDialect {
        self.schemas
            .unwrap_or_else(|| SchemaDialect::of_model(model))
    }

    fn reasoning_scope(&self, _: &ModelInfo) -> ReasoningScope {
        self.quirks.reasoning_scope
    }

    fn body(
        &self,
        info: &ModelInfo,
        request: &ModelRequest,
        schemas: &[DialectSchema],
    ) -> serde_json::Result<Vec<u8>> {
        request::encode_request(info, &self.quirks, self.enforces_schemas, request, schemas)
    }

    fn reader(&self, info: &ModelInfo, ids: CallIds) -> stream::OpenAiReader {
        let field = self.quirks.reasoning_field;
        stream::OpenAiReader::new(&info.name.provider, &info.name.model, field, ids)
    }
}

#[cfg(test)]
mod tests;
