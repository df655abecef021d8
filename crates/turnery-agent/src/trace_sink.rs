//! Trace sink: told of every call of a model, of every session, one record for each attempt (LASH-99).

use serde::Serialize;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;
use turnery_engine::{LoopId, ModelFault, Response, SessionId, Timestamp, Usage};
use turnery_models::{ModelName, Retry};

/// Is told of every call of a model: for bills, audits and analysis.
///
/// It is told while the session waits, so it must not block: whoever has much to do hands the record on.
/// A sink that panics disturbs nobody.
pub trait TraceSink: Send + Sync + 'static {
    /// One attempt is over.
    fn record(&self, call: &ModelCall);
}

/// One attempt to call a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelCall {
    /// The session that it was for.
    pub session_id: SessionId,
    /// The loop that it was for.
    pub loop_id: LoopId,
    /// For what: see [`usage::source`](crate::usage::source).
    pub source: &'static str,
    /// `provider/model`: as the provider calls it if it answered, else as it was asked for.
    pub model: String,
    /// Which attempt of its call, from 1.
    pub attempt: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took, the wait before it not counted.
    #[serde(rename = "duration_ms", serialize_with = "millis")]
    pub duration: Duration,
    /// True if its answer was taken: these add up to what the session's records say (I12). False for
    /// one that failed, and for one that was dropped because the prompt was cancelled or ran out of time.
    pub accepted: bool,
    /// What it spent; absent when the provider did not say.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::activity::maybe"
    )]
    pub usage: Option<Usage>,
    /// How it failed; absent when it was accepted or dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<ModelFault>,
}

fn millis<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// Where records go, if anybody wants them.
#[derive(Clone, Default)]
pub(crate) struct Tracing(Option<Arc<dyn TraceSink>>);

/// What a call is for.
pub(crate) struct Call<'a> {
    pub(crate) session_id: SessionId,
    pub(crate) loop_id: LoopId,
    pub(crate) source: &'static str,
    pub(crate) model: &'a ModelName,
}

impl Tracing {
    pub(crate) fn new(sink: Arc<dyn TraceSink>) -> Self {
        Self(Some(sink))
    }

    /// A call begins.
    pub(crate) fn begin(&self, call: Call<'_>) -> Trace {
        let running = self.0.as_ref().map(|sink| Running {
            sink: Arc::clone(sink),
            begun: Instant::now(),
            call: ModelCall {
                session_id: call.session_id,
                loop_id: call.loop_id,
                source: call.source,
                model: call.model.to_string(),
                attempt: 1,
                started_at: turnery_store::now(),
                duration: Duration::ZERO,
                accepted: false,
                usage: None,
                fault: None,
            },
        });
        Trace(running)
    }
}

/// A call at work. Dropped before its end, it is told of as dropped. The default one tells nobody.
#[derive(Default)]
pub(crate) struct Trace(Option<Running>);

struct Running {
    sink: Arc<dyn TraceSink>,
    begun: Instant,
    call: ModelCall,
}

impl Trace {
    /// An attempt failed, and another one follows.
    pub(crate) fn failed(&mut self, retry: &Retry) {
        let Some(running) = &mut self.0 else {
            return;
        };
        running.call.attempt = retry.attempt;
        running.call.fault = Some(retry.fault.clone());
        running.tell();
        running.call.attempt = retry.attempt.saturating_add(1);
        running.call.fault = None;
        running.begun = Instant::now() + retry.wait;
        running.call.started_at = turnery_store::now() + retry.wait;
    }

    /// The call is over.
    pub(crate) fn end(&mut self, end: &Result<Response, ModelFault>) {
        let Some(mut running) = self.0.take() else {
            return;
        };
        match end {
            Ok(response) => {
                running.call.accepted = true;
                running.call.model = format!("{}/{}", response.provider, response.model);
                running.call.usage = response.usage.map(Usage::consistent);
            }
            Err(fault) => running.call.fault = Some(fault.clone()),
        }
        running.tell();
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if let Some(mut running) = self.0.take() {
            running.tell();
        }
    }
}

impl Running {
    fn tell(&mut self) {
        self.call.duration = self.begun.elapsed();
        let told = catch_unwind(AssertUnwindSafe(|| self.sink.record(&self.call)));
        if told.is_err() {
            tracing::warn!("the trace sink panicked; a record of a model call is lost");
        }
    }
}
