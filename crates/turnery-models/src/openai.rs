//! Implements OpenAI Chat Completions, always streaming:
//! <https://platform.openai.com/docs/api-reference/chat>. Differences between compatible servers are in
//! `quirks`.

mod chunk;
mod quirks;
mod request;
mod stream;
mod tool_calls;

use crate::{ModelInfo, ModelRequest, remote_model::ApiDialect, response_accumulator::CallIds};
use quirks::Quirks;

/// Name of this API in records.
pub(crate) const API_NAME: &str = "openai_chat_completions";

/// Path below the base URL, which ends in `/v1`.
pub(crate) const PATH: &str = "/chat/completions";

/// Dialect of Chat Completions.
pub(crate) struct OpenAi {
    quirks: Quirks,
}

impl OpenAi {
    /// Creates the dialect for the server at `base_url`.
    pub(crate) fn new(base_url: &str) -> Self {
        Self {
            quirks: Quirks::for_base_url(base_url),
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
    const KEY: (&'static str, &'static str) = ("authorization", "Bearer ");
    const HEADERS: &'static [(&'static str, &'static str)] = &[];

    fn body(&self, info: &ModelInfo, request: &ModelRequest) -> serde_json::Result<Vec<u8>> {
        request::body(info, &self.quirks, request)
    }

    fn reader(&self, info: &ModelInfo, ids: CallIds) -> stream::OpenAiReader {
        stream::OpenAiReader::new(&info.name.provider, &info.name.model, ids)
    }
}
