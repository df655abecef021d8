//! Remote: a model behind HTTP. Drives one call through its attempts, whatever API it speaks.

use crate::{
    CallLimits, DeltaSender, Model, ModelInfo, ModelRequest, Retry,
    answer::CallIds,
    fault::{self, Said},
    http::Endpoint,
    retry::{Failure, RetryPolicy},
    sse::Decoder,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use turnery_engine::{FaultKind, ModelDelta, ModelFault, ModelStop, Response};

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
pub(crate) trait Reader: Send {
    /// Take in the data of one event, and append what it adds to `out`.
    fn on(&mut self, data: &str, out: &mut Vec<ModelDelta>) -> Result<Step, Broken>;

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
            drop(request);
            let mut retry = 0;
            loop {
                let mut sent = false;
                let reader = self.dialect.reader(&self.info, ids.clone());
                match self.attempt(body.clone(), reader, &out, &mut sent).await {
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
        mut reader: D::Reader,
        out: &DeltaSender,
        sent: &mut bool,
    ) -> Result<Response, Failure> {
        let at = &self.endpoint;
        let mut events = at.post(body, D::KEY, D::HEADERS).await?;
        let mut decoder = Decoder::default();
        let mut deltas = Vec::new();
        let broken = |broken| match broken {
            Broken::Promise(why) => fault::broken_promise(at, &why),
            Broken::Unfinished(why) => fault::unfinished(at, &why),
            Broken::Said(said) => said.fault(at, None),
        };
        // Behind the last blank line lies an event that may be whole, or have broken off.
        let in_event = |why, is_last| match why {
            Broken::Promise(why) if is_last => Broken::Unfinished(why),
            why @ (Broken::Promise(_) | Broken::Unfinished(_) | Broken::Said(_)) => why,
        };
        let mut step = Step::More;
        while step == Step::More {
            let chunk = events.chunk().await?;
            if let Some(bytes) = &chunk {
                decoder.push(bytes);
            }
            while step == Step::More {
                let Some(data) = decoder.next(chunk.is_none()) else {
                    break;
                };
                let is_last = chunk.is_none();
                let fails = |why| broken(in_event(why, is_last));
                let data = data.map_err(|why| fails(Broken::Promise(why.to_string())))?;
                let read = reader.on(data, &mut deltas);
                for delta in deltas.drain(..) {
                    *sent = true;
                    out.send(delta).await;
                }
                step = read.map_err(fails)?;
            }
            if chunk.is_none() {
                break;
            }
        }
        let response = reader.end().map_err(broken)?;
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
