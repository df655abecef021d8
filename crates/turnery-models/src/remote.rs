//! Remote: a model behind HTTP. Drives one call through its attempts, whatever API it speaks.

use crate::{
    CallLimits, DeltaSender, Model, ModelInfo, ModelRequest, Retry,
    answer::CallIds,
    attempt::Attempt,
    fault::{self, Said},
    http::Endpoint,
    retry::{Failure, RetryPolicy},
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use turnery_engine::{
    AnswerLimits, AnswerSize, FaultKind, ModelDelta, ModelFault, ModelStop, Response,
};

/// One model API: how a request is written, and how its answer is read.
pub(crate) trait Dialect: Send + Sync + 'static {
    /// Reads one answer.
    type Reader: Reader;
    /// The header for the key, and what stands before the key in it.
    const KEY: (&'static str, &'static str);
    /// Further headers.
    const HEADERS: &'static [(&'static str, &'static str)];

    /// The request's body, as JSON.
    fn body(&self, info: &ModelInfo, request: &ModelRequest) -> serde_json::Result<Vec<u8>>;

    /// A reader of one answer.
    fn reader(&self, info: &ModelInfo, ids: CallIds) -> Self::Reader;
}

/// Reads one answer, event by event.
pub(crate) trait Reader: Send + 'static {
    /// Take in the data of one event, and append what it adds to `out`.
    fn on(&mut self, data: &str, out: &mut Vec<ModelDelta>) -> Result<Step, Broken>;

    /// The size of the answer so far.
    fn size(&self) -> AnswerSize;

    /// The answer, once all events were read; a fault unless the API's terminal event was among them.
    fn end(self) -> Result<Response, Broken>;
}

/// Whether more events are to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    More,
    Done,
}

/// Why an answer cannot be read to its end.
#[derive(Debug, PartialEq)]
pub(crate) enum Broken {
    /// It is not what the API promises.
    Promise(String),
    /// It came to its end without the API's terminal event (C-31).
    Unfinished(String),
    /// The provider reports an error in mid-stream.
    Said(Said),
}

impl From<serde_json::Error> for Broken {
    fn from(error: serde_json::Error) -> Self {
        Self::Promise(format!("an event is not as expected: {error}"))
    }
}

/// A model behind HTTP.
pub(crate) struct Remote<D> {
    pub(crate) info: ModelInfo,
    pub(crate) endpoint: Endpoint,
    pub(crate) retry: RetryPolicy,
    pub(crate) dialect: D,
}

impl<D: Dialect> Model for Remote<D> {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call(
        &self,
        request: ModelRequest,
        out: DeltaSender,
    ) -> BoxFuture<'_, Result<Response, ModelFault>> {
        Box::pin(async move {
            let body = self.dialect.body(&self.info, &request).map_err(|error| {
                let message = format!("The request cannot be written as JSON: {error}.");
                fault::plain(FaultKind::BadRequest, message)
            })?;
            let body = Bytes::from(body);
            let ids = CallIds::of(&request.messages);
            let limits = request.answer;
            drop(request);
            let mut retry = 0;
            loop {
                let mut sent = false;
                let reader = self.dialect.reader(&self.info, ids.clone());
                let attempt = self.attempt(body.clone(), reader, limits, &out, &mut sent);
                match attempt.await {
                    Ok(response) => return self.judge(response),
                    // R9: what was shown cannot be taken back.
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
                        out.retry(Retry {
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

impl<D: Dialect> Remote<D> {
    /// One attempt. `sent` becomes true with the first fragment.
    async fn attempt(
        &self,
        body: Bytes,
        reader: D::Reader,
        limits: AnswerLimits,
        out: &DeltaSender,
        sent: &mut bool,
    ) -> Result<Response, Failure> {
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
        events.finish();
        Ok(response)
    }

    /// An output limit that left no room for a single word is a context overflow (UP-34).
    fn judge(&self, response: Response) -> Result<Response, ModelFault> {
        let read = response.usage.map(|usage| usage.context());
        let window = self.info.context_window.map(u64::from);
        if let (ModelStop::Length, true, Some(read), Some(window)) =
            (response.stop, response.content.is_empty(), read, window)
            && read >= window - window / 20
        {
            let said = Said {
                code: "context_length_exceeded".to_owned(),
                message: format!("{read} of {window} tokens are used"),
                status: None,
            };
            return Err(said.fault(&self.endpoint, None));
        }
        Ok(response)
    }
}

/// The limits that a catalogue was given reach every model of it.
impl<D> Remote<D> {
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
