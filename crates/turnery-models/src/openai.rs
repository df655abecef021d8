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
};
use quirks::Quirks;
use turnery_engine::CallIds;

/// Dialect of Chat Completions.
pub(crate) struct OpenAi {
    quirks: Quirks,
    enforces_schemas: bool,
}

impl OpenAi {
    /// Creates the dialect for the server at `base_url`. If the user chose the output limit, it is sent.
    pub(crate) fn new(base_url: &str, is_limit_chosen: bool) -> Self {
        let quirks = providers::quirks_at(base_url);
        Self {
            quirks: match is_limit_chosen {
                true => quirks.with_user_limit(),
                false => quirks,
            },
            enforces_schemas: providers::enforces_schemas_at(base_url),
        }
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

    fn body(&self, info: &ModelInfo, request: &ModelRequest) -> serde_json::Result<Vec<u8>> {
        request::encode_request(info, &self.quirks, self.enforces_schemas, request)
    }

    fn reader(&self, info: &ModelInfo, ids: CallIds) -> stream::OpenAiReader {
        stream::OpenAiReader::new(&info.name.provider, &info.name.model, ids)
    }
}
