//! Reports every prompt and every model call of every session to a trace sink (LASH-99).

use serde::Serialize;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;
use turnery_engine::{
    Event, LoopId, ModelError, Outcome, PromptId, Response, SessionId, Timestamp, Usage,
};
use turnery_models::{ModelName, RetryNotice};
use turnery_store::SpawnRef;
use turnery_tools::TraceContext;

/// Receives a record of every model call, for billing, audits and analysis; and, if it implements the other methods,
/// all that happens in a prompt.
///
/// The session waits for each method, so none must block; expensive work belongs on a queue. A panic is logged and
/// otherwise ignored.
pub trait TraceSink: Send + Sync + 'static {
    /// Records a finished attempt.
    fn record(&self, call: &ModelCallAttempt);

    /// Receives the response of an accepted attempt, before [`record`](Self::record) receives the attempt.
    fn receive_response(&self, _call: &ModelCallAttempt, _response: &Response) {}

    /// Receives the start of a prompt, before any of its events and calls.
    fn start_prompt(&self, _prompt: &PromptStart<'_>) {}

    /// Receives an event of a prompt, except fragments of output.
    fn receive_event(&self, _prompt_id: &PromptId, _event: &Event) {}

    /// Receives the end of a prompt, after all of its events and calls. Called once for each
    /// [`start_prompt`](Self::start_prompt); without an outcome if the prompt failed or was dropped.
    fn end_prompt(&self, _prompt_id: &PromptId, _outcome: Option<&Outcome>) {}
}

/// Prompt that starts.
#[derive(Clone, Copy, Debug)]
pub struct PromptStart<'a> {
    /// Id of the prompt.
    pub prompt_id: &'a PromptId,
    /// Session of the prompt.
    pub session_id: &'a SessionId,
    /// Agent that runs the prompt.
    pub agent_id: &'a str,
    /// Model of the prompt.
    pub model: &'a ModelName,
    /// Tool call that opened the session, if it is a child.
    pub spawned_by: Option<&'a SpawnRef>,
    /// Trace context of the client.
    pub trace: &'a TraceContext,
}

/// One attempt of a model call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelCallAttempt {
    /// Session that made the call.
    pub session_id: SessionId,
    /// Prompt that made the call.
    pub prompt_id: PromptId,
    /// Loop that made the call.
    pub loop_id: LoopId,
    /// Purpose: see [`usage::source`](crate::usage::source).
    pub source: &'static str,
    /// `provider/model`: as named in the response, or as requested if there was none.
    pub model: String,
    /// Model as requested, if `model` differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_model: Option<String>,
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
    /// Wait before the next attempt of the call; absent after the last one.
    #[serde(
        rename = "retry_wait_ms",
        skip_serializing_if = "Option::is_none",
        serialize_with = "serialize_optional_millis"
    )]
    pub retry_wait: Option<Duration>,
}

impl ModelCallAttempt {
    /// Returns the model as requested: `provider/model`.
    #[must_use]
    pub fn requested_model(&self) -> &str {
        self.requested_model.as_ref().unwrap_or(&self.model)
    }
}

fn serialize_millis<S: serde::Serializer>(
    time: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn serialize_optional_millis<S: serde::Serializer>(
    time: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serialize_millis(time, serializer),
        None => serializer.serialize_none(),
    }
}

/// Traces prompts and their model calls; traces nothing without a trace sink.
#[derive(Clone, Default)]
pub(crate) struct Tracer(Option<Arc<dyn TraceSink>>);

/// Context of a model call.
pub(crate) struct ModelCallContext<'a> {
    pub(crate) session_id: SessionId,
    pub(crate) prompt_id: PromptId,
    pub(crate) loop_id: LoopId,
    pub(crate) source: &'static str,
    pub(crate) model: &'a ModelName,
}

impl Tracer {
    pub(crate) fn new(sink: Arc<dyn TraceSink>) -> Self {
        Self(Some(sink))
    }

    pub(crate) fn start_prompt(&self, prompt: &PromptStart<'_>) -> PromptTrace {
        let open = self.0.as_ref().map(|sink| {
            guard_sink(|| sink.start_prompt(prompt));
            (Arc::clone(sink), prompt.prompt_id.clone())
        });
        PromptTrace(open)
    }

    pub(crate) fn trace_event(&self, prompt_id: &PromptId, event: &Event) {
        if let Some(sink) = &self.0
            && !event.kind.is_streaming()
        {
            guard_sink(|| sink.receive_event(prompt_id, event));
        }
    }

    pub(crate) fn begin_call(&self, call: ModelCallContext<'_>) -> ModelCallTrace {
        let running = self.0.as_ref().map(|sink| OpenModelCall {
            sink: Arc::clone(sink),
            started: Instant::now(),
            call: ModelCallAttempt {
                session_id: call.session_id,
                prompt_id: call.prompt_id,
                loop_id: call.loop_id,
                source: call.source,
                model: call.model.to_string(),
                requested_model: None,
                attempt: 1,
                started_at: turnery_store::now(),
                duration: Duration::ZERO,
                accepted: false,
                usage: None,
                error: None,
                retry_wait: None,
            },
        });
        ModelCallTrace(running)
    }
}

/// Calls a method of a sink; a panic is logged and otherwise ignored.
fn guard_sink(call: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(call)).is_err() {
        tracing::warn!("the trace sink panicked; a part of the trace is lost");
    }
}

/// Trace of a running prompt. Dropped before its end, the prompt is reported without an outcome.
pub(crate) struct PromptTrace(Option<(Arc<dyn TraceSink>, PromptId)>);

impl PromptTrace {
    pub(crate) fn end(mut self, outcome: Option<&Outcome>) {
        self.report_end(outcome);
    }

    fn report_end(&mut self, outcome: Option<&Outcome>) {
        if let Some((sink, prompt_id)) = self.0.take() {
            guard_sink(|| sink.end_prompt(&prompt_id, outcome));
        }
    }
}

impl Drop for PromptTrace {
    fn drop(&mut self) {
        self.report_end(None);
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
        running.call.retry_wait = Some(retry.wait);
        running.report();
        running.call.attempt = retry.attempt.saturating_add(1);
        running.call.error = None;
        running.call.retry_wait = None;
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
                let model = format!("{}/{}", response.provider, response.model);
                if model != running.call.model {
                    running.call.requested_model =
                        Some(std::mem::replace(&mut running.call.model, model));
                }
                running.call.usage = response.usage.map(Usage::normalized);
                guard_sink(|| running.sink.receive_response(&running.call, response));
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
        guard_sink(|| self.sink.record(&self.call));
    }
}
