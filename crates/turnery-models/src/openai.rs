//! OpenAI Chat Completions, always as a stream: <https://platform.openai.com/docs/api-reference/chat>.
//! Many servers copy it, each in its own way; what differs in requests is in `quirks`.

mod calls;
mod chunk;
mod quirks;
mod request;
mod stream;

use crate::{ModelInfo, ModelRequest, answer::CallIds, remote::Dialect};
use quirks::Quirks;

/// The name of this API in records.
pub(crate) const API: &str = "openai_chat_completions";

/// Below the base URL, which ends in `/v1`.
pub(crate) const PATH: &str = "/chat/completions";

/// Speaks Chat Completions.
pub(crate) struct OpenAi {
    quirks: Quirks,
}

impl OpenAi {
    /// For the server at `base_url`.
    pub(crate) fn new(base_url: &str) -> Self {
        Self {
            quirks: Quirks::of(base_url),
        }
    }

    /// The same, where a person said how much may be answered.
    pub(crate) fn choosing_limit(self) -> Self {
        Self {
            quirks: self.quirks.choosing_limit(),
        }
    }
}

impl Dialect for OpenAi {
    type Reader = stream::Reader;
    const KEY: (&'static str, &'static str) = ("authorization", "Bearer ");
    const HEADERS: &'static [(&'static str, &'static str)] = &[];

    fn body(&self, info: &ModelInfo, request: &ModelRequest) -> serde_json::Result<Vec<u8>> {
        request::body(info, &self.quirks, request)
    }

    fn reader(&self, info: &ModelInfo, ids: CallIds) -> stream::Reader {
        stream::Reader::new(&info.name.provider, &info.name.model, ids)
    }
}
