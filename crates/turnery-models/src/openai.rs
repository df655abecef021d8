//! Implements OpenAI Chat Completions, always streaming:
//! <https://platform.openai.com/docs/api-reference/chat>. Differences between compatible servers are in
//! `quirks`.

mod chunk;
pub(crate) mod quirks;
mod request;
mod stream;
mod tool_calls;

use crate::{
    dialect::{ApiDescriptor, ApiDialect},
    model::{ModelInfo, ModelRequest},
    providers,
    response_accumulator::CallIds,
};
use quirks::Quirks;

/// Chat Completions below a base URL that ends in `/v1`.
pub(crate) const API: ApiDescriptor = ApiDescriptor {
    record_name: "openai_chat_completions",
    path: "/chat/completions",
    models_path: "/models",
    key_header: ("authorization", "Bearer "),
    headers: &[],
    takes_audio: true,
};

/// Dialect of Chat Completions.
pub(crate) struct OpenAi {
    quirks: Quirks,
}

impl OpenAi {
    /// Creates the dialect for the server at `base_url`.
    pub(crate) fn new(base_url: &str) -> Self {
        Self {
            quirks: providers::quirks_at(base_url),
        }
    }

    /// Sends the output limit, because the user configured it.
    pub(crate) fn choosing_limit(self) -> Self {
        Self {
            quirks: self.quirks.with_user_limit(),
        }
    }
}

impl ApiDialect for OpenAi {
    type Reader = stream::OpenAiReader;
    const API: ApiDescriptor = API;

    fn body(&self, info: &ModelInfo, request: &ModelRequest) -> serde_json::Result<Vec<u8>> {
        request::body(info, &self.quirks, request)
    }

    fn reader(&self, info: &ModelInfo, ids: CallIds) -> stream::OpenAiReader {
        stream::OpenAiReader::new(&info.name.provider, &info.name.model, ids)
    }
}
