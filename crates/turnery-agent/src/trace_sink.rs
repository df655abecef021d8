//! Reports every model call of every session to a trace sink, one record for each attempt (LASH-99).

use serde::Serialize;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;
use turnery_engine::{LoopId, ModelError, Response, SessionId, Timestamp, Usage};
use turnery_models::{ModelName, RetryNotice};

/// Receives a record of every model call, for billing, audits and analysis.
///
/// The session waits for `record`, so it must not block; expensive work belongs on a queue. A panic is logged
/// and otherwise ignored.
pub trait TraceSink: Send + Sync + 'static {
    /// Records a finished attempt.
    fn record(&self, call: &ModelCallAttempt);
}

/// One attempt of a model call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelCallAttempt {
    /// Session that made the call.
    pub session_id: SessionId,
    /// Loop that made the call.
    pub loop_id: LoopId,
    /// Purpose: see [`usage::source`](crate::usage::source).
    pub source: &'static str,
    /// `provider/model`: as named in the response, or as requested if there was none.
    pub model: String,
    /// Number of the attempt within its call, from 1.
    pub attempt: u32,
    /// Start time.
    pub started_at: Timestamp,
    /// Duration, excluding the wait before the attempt.
    #[serde(rename = "duration_ms", serialize_with = "serialize_millis")]
    pub duration: Duration,
    /// True if the response was used: the usage of these attempts adds up to the session's records (I12).
    /// False for an attempt that failed, or was dropped by a cancel or timeout.
    pub accepted: bool,
    /// Token usage; absent if the provider did not report it.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::activity::serialize_optional_usage"
    )]
    pub usage: Option<Usage>,
    /// Error; absent if the attempt was accepted or dropped.
    #[serde(rename = "fault", skip_serializing_if = "Option::is_none")]
    pub error: Option<ModelError>,
}

fn serialize_millis<S: serde::Serializer>(
    time: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// Starts the trace of each model call; traces nothing without a trace sink.
#[derive(Clone, Default)]
pub(crate) struct ModelCallTracer(Option<Arc<dyn TraceSink>>);

/// Context of a model call.
pub(crate) struct ModelCallContext<'a> {
    pub(crate) session_id: SessionId,
    pub(crate) loop_id: LoopId,
    pub(crate) source: &'static str,
    pub(crate) model: &'a ModelName,
}

impl ModelCallTracer {
    pub(crate) fn new(sink: Arc<dyn TraceSink>) -> Self {
        Self(Some(sink))
    }

    pub(crate) fn begin(&self, call: ModelCallContext<'_>) -> ModelCallTrace {
        let running = self.0.as_ref().map(|sink| OpenModelCall {
            sink: Arc::clone(sink),
            started: Instant::now(),
            call: ModelCallAttempt {
                session_id: call.session_id,
                loop_id: call.loop_id,
                source: call.source,
                model: call.model.to_string(),
                attempt: 1,
                started_at: turnery_store::now(),
                duration: Duration::ZERO,
                accepted: false,
                usage: None,
                error: None,
            },
        });
        ModelCallTrace(running)
    }
}

/// Trace of a running call. Dropped before its end, the call is recorded as dropped. The default traces
/// nothing.
#[derive(Default)]
pub(crate) struct ModelCallTrace(Option<OpenModelCall>);

struct OpenModelCall {
    sink: Arc<dyn TraceSink>,
    started: Instant,
    call: ModelCallAttempt,
}

impl ModelCallTrace {
    /// Records a failed attempt that is followed by another one.
    pub(crate) fn attempt_failed(&mut self, retry: &RetryNotice) {
        let Some(running) = &mut self.0 else {
            return;
        };
        running.call.attempt = retry.attempt;
        running.call.error = Some(retry.error.clone());
        running.report();
        running.call.attempt = retry.attempt.saturating_add(1);
        running.call.error = None;
        running.started = Instant::now() + retry.wait;
        running.call.started_at = turnery_store::now() + retry.wait;
    }

    pub(crate) fn end(&mut self, end: &Result<Response, ModelError>) {
        let Some(mut running) = self.0.take() else {
            return;
        };
        match end {
            Ok(response) => {
                running.call.accepted = true;
                running.call.model = format!("{}/{}", response.provider, response.model);
                running.call.usage = response.usage.map(Usage::normalized);
            }
            Err(error) => running.call.error = Some(error.clone()),
        }
        running.report();
    }
}

impl Drop for ModelCallTrace {
    fn drop(&mut self) {
        if let Some(mut running) = self.0.take() {
            running.report();
        }
    }
}

impl OpenModelCall {
    fn report(&mut self) {
        self.call.duration = self.started.elapsed();
        let recorded = catch_unwind(AssertUnwindSafe(|| self.sink.record(&self.call)));
        if recorded.is_err() {
            tracing::warn!("the trace sink panicked; a record of a model call is lost");
        }
    }
}
