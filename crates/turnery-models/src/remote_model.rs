//! Calls a model over HTTP, with retries, independent of its API.

use crate::{
    CallLimits, Model, ModelEventSender, ModelInfo, ModelRequest, RetryNotice,
    attempt::Attempt,
    errors::{self, ProviderError},
    http::Endpoint,
    response_accumulator::CallIds,
    retry::{AttemptError, RetryPolicy},
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use turnery_engine::{
    ModelDelta, ModelError, ModelErrorKind, ModelStop, Response, ResponseLimits, ResponseSize,
};

/// One model API: how requests are written and responses are read.
pub(crate) trait ApiDialect: Send + Sync + 'static {
    /// Reader of one response.
    type Reader: ResponseReader;
    /// Header for the key, and the prefix of its value.
    const KEY: (&'static str, &'static str);
    /// Additional headers.
    const HEADERS: &'static [(&'static str, &'static str)];

    /// Returns the request body as JSON.
    fn body(&self, info: &ModelInfo, request: &ModelRequest) -> serde_json::Result<Vec<u8>>;

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
    Promise(String),
    /// The stream ended without the API's terminal event (C-31).
    Unfinished(String),
    /// The provider reported an error within the stream.
    Said(ProviderError),
}

impl From<serde_json::Error> for StreamError {
    fn from(error: serde_json::Error) -> Self {
        Self::Promise(format!("an event is not as expected: {error}"))
    }
}

/// A model behind HTTP.
pub(crate) struct RemoteModel<D> {
    pub(crate) info: ModelInfo,
    pub(crate) endpoint: Endpoint,
    pub(crate) retry: RetryPolicy,
    pub(crate) dialect: D,
}

impl<D: ApiDialect> Model for RemoteModel<D> {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call(
        &self,
        request: ModelRequest,
        out: ModelEventSender,
    ) -> BoxFuture<'_, Result<Response, ModelError>> {
        Box::pin(async move {
            let body = self.dialect.body(&self.info, &request).map_err(|error| {
                let message = format!("The request cannot be written as JSON: {error}.");
                errors::from_kind(ModelErrorKind::BadRequest, message)
            })?;
            let body = Bytes::from(body);
            let ids = CallIds::from_history(&request.messages);
            let limits = request.answer;
            drop(request);
            let mut retry = 0;
            loop {
                let mut sent = false;
                let reader = self.dialect.reader(&self.info, ids.clone());
                let attempt = self.attempt(body.clone(), reader, limits, &out, &mut sent);
                match attempt.await {
                    Ok(response) => return self.check_response(response),
                    // R9: deltas that were shown cannot be withdrawn.
                    Err(failure) if sent => return Err(failure.fault),
                    Err(failure) => {
                        let fault = failure.fault.clone();
                        let wait = self.retry.after(retry, failure)?;
                        tracing::debug!(
                            provider = self.endpoint.provider,
                            retry,
                            ?wait,
                            "model call is made again"
                        );
                        let attempt = retry + 1;
                        out.retry(RetryNotice {
                            attempt,
                            fault,
                            wait,
                        })
                        .await;
                        tokio::time::sleep(wait).await;
                    }
                }
                retry += 1;
            }
        })
    }
}

impl<D: ApiDialect> RemoteModel<D> {
    /// Makes one attempt. Sets `sent` to true with the first delta.
    async fn attempt(
        &self,
        body: Bytes,
        reader: D::Reader,
        limits: ResponseLimits,
        out: &ModelEventSender,
        sent: &mut bool,
    ) -> Result<Response, AttemptError> {
        let mut silence = self.endpoint.silence(Some(out));
        let mut events = self
            .endpoint
            .post(body, D::KEY, D::HEADERS, &mut silence)
            .await?;
        let attempt = Attempt {
            at: &self.endpoint,
            reader,
            limits,
            out,
            sent,
        };
        let response = attempt.read(&mut events, &mut silence).await?;
        events.drain();
        Ok(response)
    }

    /// Treats an output limit without any output as a context overflow (UP-34).
    fn check_response(&self, response: Response) -> Result<Response, ModelError> {
        let read = response.usage.map(|usage| usage.context_tokens());
        let window = self.info.context_window.map(u64::from);
        if let (ModelStop::Length, true, Some(read), Some(window)) =
            (response.stop, response.content.is_empty(), read, window)
            && read >= window - window / 20
        {
            let said = ProviderError {
                code: "context_length_exceeded".to_owned(),
                message: format!("{read} of {window} tokens are used"),
                status: None,
            };
            return Err(said.fault(&self.endpoint, None));
        }
        Ok(response)
    }
}

/// Limits given to a registry apply to each of its models.
impl<D> RemoteModel<D> {
    pub(crate) fn new(
        info: ModelInfo,
        endpoint: Endpoint,
        limits: &CallLimits,
        dialect: D,
    ) -> Self {
        Self {
            info,
            endpoint,
            retry: limits.retry.clone(),
            dialect,
        }
    }
}
