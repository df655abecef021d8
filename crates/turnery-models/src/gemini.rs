//! Implements Gemini `generateContent`, always streaming:
//! <https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent>.

pub(crate) mod generation;
mod part;
mod request;
mod stream;

use crate::{
    dialect::{ApiDescriptor, ApiDialect},
    model::{ModelInfo, ModelRequest},
    schema_dialect::{DialectSchema, SchemaDialect},
};
use turnery_engine::CallIds;

/// Dialect of the Gemini API.
#[derive(Default)]
pub(crate) struct Gemini {
    has_user_limit: bool,
}

impl Gemini {
    /// Creates the dialect. If the user chose the output limit, it is sent to every model.
    pub(crate) fn new(has_user_limit: bool) -> Self {
        Self { has_user_limit }
    }
}

impl ApiDialect for Gemini {
    type Reader = stream::GeminiReader;
    /// Paths below a base URL that ends in the version of the API, `/v1beta`.
    const API: ApiDescriptor = ApiDescriptor {
        record_name: "gemini_generate_content",
        path: "/models/{model}:streamGenerateContent?alt=sse",
        // The largest page.
        models_path: "/models?pageSize=1000",
        key_header: ("x-goog-api-key", ""),
        headers: &[],
        takes_audio: true,
    };

    fn schema_dialect(&self, _model: &str) -> SchemaDialect {
        SchemaDialect::Gemini
    }

    fn body(
        &self,
        info: &ModelInfo,
        request: &ModelRequest,
        schemas: &[DialectSchema],
    ) -> serde_json::Result<Vec<u8>> {
        request::encode_request(info, self.has_user_limit, request, schemas)
    }

    fn reader(&self, info: &ModelInfo, ids: CallIds) -> stream::GeminiReader {
        stream::GeminiReader::new(&info.name.provider, &info.name.model, ids)
    }
}
