//! Calls a model over HTTP, with retries, independent of its API.

use crate::{
    attempt::ResponseReceiver,
    context_hash::fingerprint,
    dialect::ApiDialect,
    endpoint::Endpoint,
    errors::ProviderError,
    model::{Model, ModelEventSender, ModelInfo, ModelRequest, RetryNotice},
    provider::CallLimits,
    response_accumulator::block_number,
    retry::{AttemptError, RetryPolicy},
    schema_dialect::{SchemaCache, SchemaDialect, restore_property_names},
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use turnery_engine::{
    CallIds, ModelError, ModelErrorKind, ModelStop, Response, ResponseLimits, ResponseSize,
};

/// Most requests that continue a paused response.
const MAX_CONTINUATIONS: usize = 10;

/// A model behind HTTP.
pub(crate) struct RemoteModel<D> {
    pub(crate) info: ModelInfo,
    pub(crate) endpoint: Endpoint,
    pub(crate) retry: RetryPolicy,
    pub(crate) dialect: D,
    schemas: SchemaCache,
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
            let schemas = self.schemas.schemas(&request.tools);
            let body = self.dialect.body(&self.info, &request, &schemas);
            let body = body.map_err(|error| {
                let message = format!("The request cannot be written as JSON: {error}.");
                ModelError::new(ModelErrorKind::BadRequest, message)
            })?;
            let body = Bytes::from(body);
            let ids = CallIds::from_history(&request.messages);
            let scope = self.dialect.reasoning_scope(&self.info);
            let fingerprint = fingerprint(&self.info, &request, scope);
            let limits = request.answer_limits;
            let renamed = match self.schemas.dialect {
                SchemaDialect::Anthropic => Some(request.tools.clone()),
                SchemaDialect::OpenAi | SchemaDialect::Gemini | SchemaDialect::Moonshot => None,
            };
            drop(request);
            let mut call = RemoteCall {
                ids,
                limits,
                out: &out,
                has_sent: false,
            };
            let mut response = self
                .call_with_retries(body.clone(), &mut call, None)
                .await?;
            for _ in 0..MAX_CONTINUATIONS {
                let Some(next) = self.dialect.continuation(&self.info, &body, &response) else {
                    break;
                };
                // Only the deltas of this part could be shown twice: a retry repeats no other.
                call.has_sent = false;
                response = self
                    .call_with_retries(Bytes::from(next), &mut call, Some(response))
                    .await?;
            }
            response.request = Some(fingerprint);
            if let Some(tools) = &renamed {
                restore_property_names(tools, &mut response);
            }
            self.check_response(response)
        })
    }
}

/// A call in progress.
struct RemoteCall<'a> {
    ids: CallIds,
    limits: ResponseLimits,
    out: &'a ModelEventSender,
    /// True once a delta was sent.
    has_sent: bool,
}

impl<D: ApiDialect> RemoteModel<D> {
    /// Makes attempts until one succeeds, and returns its response after what was received before.
    async fn call_with_retries(
        &self,
        body: Bytes,
        call: &mut RemoteCall<'_>,
        before: Option<Response>,
    ) -> Result<Response, ModelError> {
        let mut retry = 0;
        loop {
            match self.attempt(body.clone(), call, before.as_ref()).await {
                Ok(response) => {
                    return Ok(match before {
                        Some(before) => join_responses(before, response),
                        None => response,
                    });
                }
                // R9: deltas that were shown cannot be withdrawn.
                Err(failure) if call.has_sent => return Err(failure.error),
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
                    let notice = RetryNotice {
                        attempt,
                        error,
                        wait,
                        takeover: None,
                    };
                    call.out.send_retry(notice).await;
                    tokio::time::sleep(wait).await;
                }
            }
            retry += 1;
        }
    }

    /// Makes one attempt, for the part of a response after `before`.
    async fn attempt(
        &self,
        body: Bytes,
        call: &mut RemoteCall<'_>,
        before: Option<&Response>,
    ) -> Result<Response, AttemptError> {
        let mut silence = self.endpoint.start_silence_timer(Some(call.out));
        let headers = self.dialect.headers(&self.info);
        let mut events = self
            .endpoint
            .post(body, D::API.key_header, headers, &mut silence)
            .await?;
        let size = before.map(ResponseSize::of_response).unwrap_or_default();
        let limits = ResponseLimits {
            bytes: call.limits.bytes.saturating_sub(size.bytes()),
            ..call.limits
        };
        let attempt = ResponseReceiver {
            endpoint: &self.endpoint,
            reader: self.dialect.reader(&self.info, call.ids.clone()),
            limits,
            first_block: block_number(before.map_or(0, |before| before.content.len())),
            sender: call.out,
            has_sent: &mut call.has_sent,
        };
        let response = attempt.read_response(&mut events, &mut silence).await?;
        events.drain();
        Ok(response)
    }

    /// Treats a response without output as a context overflow if the server says so, or if the context window is
    /// almost full (UP-34): Ollama and z.ai cut a conversation that is too long without an error.
    fn check_response(&self, response: Response) -> Result<Response, ModelError> {
        let may_be_cut = match response.stop {
            ModelStop::Length | ModelStop::EndTurn => response.content.is_empty(),
            ModelStop::ToolUse | ModelStop::Refusal => false,
        };
        if !may_be_cut {
            return Ok(response);
        }
        let read = response.usage.map(|usage| usage.context_tokens());
        let window = self.info.context_window.map(u64::from);
        let message = match (response.raw_stop.as_deref(), read, window) {
            (Some(reason @ "model_context_window_exceeded"), ..) => reason.to_owned(),
            (_, Some(read), Some(window)) if read >= window - window / 20 => {
                format!("{read} of {window} tokens are used")
            }
            (Some(_) | None, ..) => return Ok(response),
        };
        let overflow = ProviderError {
            code: "context_length_exceeded".to_owned(),
            message,
            status: None,
        };
        Err(overflow.to_model_error(&self.endpoint, None))
    }
}

/// Appends the next part of a paused response. The usage is the sum of both calls, because both are billed.
fn join_responses(before: Response, next: Response) -> Response {
    let mut content = before.content;
    content.extend(next.content);
    let usage = before.usage.zip(next.usage).map(|(mut sum, usage)| {
        sum += usage;
        sum
    });
    Response {
        content,
        usage,
        ..next
    }
}

impl<D: ApiDialect> RemoteModel<D> {
    /// Creates a model with the retry policy of `limits`.
    pub(crate) fn new(
        info: ModelInfo,
        endpoint: Endpoint,
        limits: &CallLimits,
        dialect: D,
    ) -> Self {
        let schemas = SchemaCache::new(dialect.schema_dialect(&info.name.model));
        Self {
            info,
            endpoint,
            retry: limits.retry.clone(),
            dialect,
            schemas,
        }
    }
}
