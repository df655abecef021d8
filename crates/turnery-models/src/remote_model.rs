//! Calls a model over HTTP, with retries, independent of its API.

use crate::{
    attempt::ResponseReceiver,
    dialect::ApiDialect,
    endpoint::Endpoint,
    errors::ProviderError,
    model::{Model, ModelEventSender, ModelInfo, ModelRequest, RetryNotice},
    provider::CallLimits,
    retry::{AttemptError, RetryPolicy},
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use turnery_engine::{CallIds, ModelError, ModelErrorKind, ModelStop, Response, ResponseLimits};

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
                ModelError::new(ModelErrorKind::BadRequest, message)
            })?;
            let body = Bytes::from(body);
            let ids = CallIds::from_history(&request.messages);
            let limits = request.answer_limits;
            drop(request);
            let mut retry = 0;
            loop {
                let mut sent = false;
                let reader = self.dialect.reader(&self.info, ids.clone());
                let attempt = self.attempt(body.clone(), reader, limits, &out, &mut sent);
                match attempt.await {
                    Ok(response) => return self.check_response(response),
                    // R9: deltas that were shown cannot be withdrawn.
                    Err(failure) if sent => return Err(failure.error),
                    Err(failure) => {
                        let error = failure.error.clone();
                        let wait = self.retry.wait_before(retry, failure)?;
                        tracing::debug!(
                            provider = self.endpoint.provider,
                            retry,
                            ?wait,
                            "model call is made again"
                        );
                        let attempt = retry + 1;
                        out.send_retry(RetryNotice {
                            attempt,
                            error,
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
        let mut silence = self.endpoint.start_silence_timer(Some(out));
        let mut events = self
            .endpoint
            .post(body, D::API.key_header, D::API.headers, &mut silence)
            .await?;
        let attempt = ResponseReceiver {
            endpoint: &self.endpoint,
            reader,
            limits,
            sender: out,
            has_sent: sent,
        };
        let response = attempt.read_response(&mut events, &mut silence).await?;
        events.drain();
        Ok(response)
    }

    /// Treats a response without output as a context overflow if it reached the output limit and the context
    /// window is almost full (UP-34).
    fn check_response(&self, response: Response) -> Result<Response, ModelError> {
        let read = response.usage.map(|usage| usage.context_tokens());
        let window = self.info.context_window.map(u64::from);
        if let (ModelStop::Length, true, Some(read), Some(window)) =
            (response.stop, response.content.is_empty(), read, window)
            && read >= window - window / 20
        {
            let overflow = ProviderError {
                code: "context_length_exceeded".to_owned(),
                message: format!("{read} of {window} tokens are used"),
                status: None,
            };
            return Err(overflow.to_model_error(&self.endpoint, None));
        }
        Ok(response)
    }
}

/// (on `new` instead of the impl) Creates a model with the retry policy of `limits`.
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
