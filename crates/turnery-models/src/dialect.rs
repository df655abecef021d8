//! Defines what a model API consists of: its paths and headers, its requests and its responses.

use crate::{
    errors::ProviderError,
    history::ReasoningScope,
    model::{ModelInfo, ModelRequest},
    schema_dialect::{DialectSchema, SchemaDialect},
};
use turnery_engine::{CallIds, ModelDelta, Response, ResponseSize};

/// Paths and headers of a model API.
#[derive(Clone, Copy)]
pub(crate) struct ApiDescriptor {
    /// Name of the API in records.
    pub(crate) record_name: &'static str,
    /// Path of model calls below the base URL; `{model}` stands for the name of the model.
    pub(crate) path: &'static str,
    /// Path of the list of models below the base URL.
    pub(crate) models_path: &'static str,
    /// Header for the key, and the prefix of its value.
    pub(crate) key_header: (&'static str, &'static str),
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// True if the API has a format for audio.
    pub(crate) takes_audio: bool,
}

/// One model API: how requests are written and responses are read.
pub(crate) trait ApiDialect: Send + Sync + 'static {
    type Reader: ResponseReader;
    /// Paths and headers of the API.
    const API: ApiDescriptor;

    /// Returns the part of JSON Schema that the model's provider accepts.
    fn schema_dialect(&self, _model: &str) -> SchemaDialect {
        SchemaDialect::OpenAi
    }

    /// Returns the requests in which the model's reasoning is sent back.
    fn reasoning_scope(&self, _info: &ModelInfo) -> ReasoningScope {
        ReasoningScope::SameModel
    }

    /// Returns the request body as JSON. `schemas` are those of the request's tools, in their order.
    fn body(
        &self,
        info: &ModelInfo,
        request: &ModelRequest,
        schemas: &[DialectSchema],
    ) -> serde_json::Result<Vec<u8>>;

    /// Returns the request body as JSON, with the schemas adapted for this request alone.
    #[cfg(test)]
    fn test_body(&self, info: &ModelInfo, request: &ModelRequest) -> Vec<u8> {
        let schemas = self.schema_dialect(&info.name.model).adapt(&request.tools);
        self.body(info, request, &schemas).unwrap()
    }

    /// Returns the headers of model calls, besides the key.
    fn headers(&self, _info: &ModelInfo) -> &'static [(&'static str, &'static str)] {
        Self::API.headers
    }

    /// Returns the request that continues `response`, which the server paused; `None` if it is complete. `body` is the
    /// first request.
    fn continuation(
        &self,
        _info: &ModelInfo,
        _body: &[u8],
        _response: &Response,
    ) -> Option<Vec<u8>> {
        None
    }

    /// Creates a reader of one response.
    fn reader(&self, info: &ModelInfo, ids: CallIds) -> Self::Reader;
}

/// Reads one response, event by event.
pub(crate) trait ResponseReader: Send + 'static {
    /// Reads the data of one event, and appends its deltas to `out`.
    fn on(&mut self, data: &str, out: &mut Vec<ModelDelta>) -> Result<StreamStatus, StreamError>;

    /// Returns the size of the response so far.
    fn size(&self) -> ResponseSize;

    /// Returns the response once all events were read; an error if the API's terminal event was not among
    /// them.
    fn end(self) -> Result<Response, StreamError>;
}

/// State of the stream after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamStatus {
    More,
    Done,
}

/// Reason why a response cannot be read to its end.
#[derive(Debug, PartialEq)]
pub(crate) enum StreamError {
    /// The stream violates the API.
    Violation(String),
    /// The stream ended without the API's terminal event (C-31).
    Unfinished(String),
    /// The provider reported an error within the stream.
    Provider(ProviderError),
}

impl From<serde_json::Error> for StreamError {
    fn from(error: serde_json::Error) -> Self {
        Self::Violation(format!("an event is not as expected: {error}"))
    }
}
