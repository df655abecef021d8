//! Reads one response from a byte stream, within its limits and without blocking other tasks.

use crate::{
    ModelEventSender,
    dialect::{ResponseReader, StreamError, StreamStatus},
    endpoint::Endpoint,
    errors::{self, ProviderError},
    retry::AttemptError,
    silence::{SilenceError, SilenceTimer},
    sse::{SseDecoder, SseKind},
};
use bytes::Bytes;
use std::{future::Future, panic};
use turnery_engine::{ModelDelta, ModelError, Response, ResponseLimits};

/// Bytes read before yielding to other tasks of the runtime. Unit: bytes.
const YIELD_AFTER_BYTES: usize = 64 * 1024;

/// Size above which a response is settled on a blocking thread, because its arguments are parsed then. Unit:
/// bytes.
const MAX_INLINE_PARSE_BYTES: u64 = 256 * 1024;

/// Source of the bytes of a response.
pub(crate) trait ByteSource: Send {
    /// Returns the next bytes; `None` at the end of the response.
    fn next_chunk(&mut self) -> impl Future<Output = Result<Option<Bytes>, ModelError>> + Send;
}

/// Receives one streamed response: decodes the byte stream, forwards its deltas and checks its limits.
pub(crate) struct ResponseReceiver<'a, R> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) reader: R,
    pub(crate) limits: ResponseLimits,
    /// Number of blocks of the parts of the response before this one.
    pub(crate) first_block: u32,
    pub(crate) sender: &'a ModelEventSender,
    /// Set to true with the first delta.
    pub(crate) has_sent: &'a mut bool,
}

impl<R: ResponseReader> ResponseReceiver<'_, R> {
    /// Reads the whole response.
    pub(crate) async fn read_response(
        mut self,
        source: &mut impl ByteSource,
        silence: &mut SilenceTimer<'_>,
    ) -> Result<Response, AttemptError> {
        let mut decoder = SseDecoder::default();
        let mut bytes_since_yield = 0;
        loop {
            let next = silence.wait_for(source.next_chunk()).await;
            let chunk = next.map_err(|which| self.silence_error(silence, which))??;
            if let Some(bytes) = &chunk {
                silence.note_bytes();
                bytes_since_yield += bytes.len();
                decoder.push(bytes);
            }
            let step = self
                .read_events(&mut decoder, chunk.is_none(), silence)
                .await?;
            if step == StreamStatus::Done || chunk.is_none() {
                break;
            }
            if bytes_since_yield >= YIELD_AFTER_BYTES {
                bytes_since_yield = 0;
                tokio::task::yield_now().await;
            }
        }
        self.finish().await
    }

    async fn read_events(
        &mut self,
        decoder: &mut SseDecoder,
        is_last: bool,
        silence: &mut SilenceTimer<'_>,
    ) -> Result<StreamStatus, AttemptError> {
        let mut deltas = Vec::new();
        let mut bytes_since_yield = 0;
        while let Some(event) = decoder.next_event(is_last) {
            let event = event.map_err(|why| {
                self.stream_error(StreamError::Violation(why.to_string()), is_last)
            })?;
            let data = event.data;
            let reported = match event.kind {
                SseKind::Data => None,
                SseKind::Error => Some(ProviderError::from_error_event(data)),
                SseKind::Bare => ProviderError::within(data),
            };
            if let Some(error) = reported {
                return Err(model_error(self.endpoint, StreamError::Provider(error)).into());
            }
            // Some servers send empty events as keep-alives.
            if event.kind == SseKind::Bare || data.trim_ascii().is_empty() {
                continue;
            }
            bytes_since_yield += data.len();
            let size = self.reader.size().bytes();
            let read = self.reader.on(data, &mut deltas);
            // Signatures and opaque blocks are content without a delta.
            let has_content = !deltas.is_empty() || self.reader.size().bytes() > size;
            self.send_deltas(&mut deltas).await;
            if has_content {
                silence.note_content();
            }
            let step = read.map_err(|why| self.stream_error(why, is_last))?;
            if let Err(overrun) = self.reader.size().check(&self.limits) {
                return Err(errors::answer_limit_exceeded(overrun).into());
            }
            if step == StreamStatus::Done {
                return Ok(step);
            }
            if bytes_since_yield >= YIELD_AFTER_BYTES {
                bytes_since_yield = 0;
                tokio::task::yield_now().await;
            }
        }
        Ok(StreamStatus::More)
    }

    async fn send_deltas(&mut self, deltas: &mut Vec<ModelDelta>) {
        for mut delta in deltas.drain(..) {
            *self.has_sent = true;
            let (ModelDelta::Text { block, .. }
            | ModelDelta::Thinking { block, .. }
            | ModelDelta::ToolCallArgs { block, .. }) = &mut delta;
            *block = block.saturating_add(self.first_block);
            self.sender.send_delta(delta).await;
        }
    }

    async fn finish(self) -> Result<Response, AttemptError> {
        let Self {
            endpoint: at,
            reader,
            ..
        } = self;
        let ended = if reader.size().bytes() <= MAX_INLINE_PARSE_BYTES {
            reader.end()
        } else {
            match tokio::task::spawn_blocking(move || reader.end()).await {
                Ok(ended) => ended,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => panic::resume_unwind(panic),
                    Err(_) => Err(StreamError::Unfinished("turnery is ending".to_owned())),
                },
            }
        };
        ended.map_err(|why| model_error(at, why).into())
    }

    /// Converts an error; a malformed last event counts as truncated, because no blank line ends it.
    fn stream_error(&self, why: StreamError, is_last: bool) -> ModelError {
        let why = match why {
            StreamError::Violation(why) if is_last => StreamError::Unfinished(why),
            why @ (StreamError::Violation(_)
            | StreamError::Unfinished(_)
            | StreamError::Provider(_)) => why,
        };
        model_error(self.endpoint, why)
    }

    fn silence_error(&self, silence: &SilenceTimer<'_>, which: SilenceError) -> ModelError {
        silence_error(self.endpoint, silence, which)
    }
}

fn model_error(at: &Endpoint, why: StreamError) -> ModelError {
    match why {
        StreamError::Violation(why) => errors::protocol_violation(at, &why),
        StreamError::Unfinished(why) => errors::unfinished(at, &why),
        StreamError::Provider(error) => error.to_model_error(at, None),
    }
}

/// Returns the error of a call that was silent for too long.
pub(crate) fn silence_error(
    at: &Endpoint,
    silence: &SilenceTimer<'_>,
    which: SilenceError,
) -> ModelError {
    match which {
        SilenceError::Idle => errors::idle_timeout(at, silence.limits().idle),
        SilenceError::Content => errors::content_timeout(at, silence.limits().content),
    }
}

#[cfg(test)]
mod tests;
