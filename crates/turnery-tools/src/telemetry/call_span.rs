//! Reports the start and the end of one call to subscribers.

use super::{CallStage, EventMetadata, Measurements, ToolTelemetry, sanitise};
use crate::origin::Origin;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;
use turnery_engine::{ToolCall, ToolEnvelope, ToolErrorKind};

/// A running call. Dropping it before its end was reported reports the call as interrupted.
pub(crate) struct CallSpan<'a> {
    telemetry: &'a ToolTelemetry,
    call: &'a ToolCall,
    origin: &'a Origin,
    started: Instant,
    is_end_emitted: bool,
}

impl<'a> CallSpan<'a> {
    pub(crate) fn start(
        telemetry: &'a ToolTelemetry,
        call: &'a ToolCall,
        origin: &'a Origin,
    ) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let started = Measurements::Began {
            system_time: nanoseconds(now.unwrap_or_default()),
        };
        telemetry.emit(CallStage::Start, started, || {
            metadata([
                ("tool_name", json!(call.name)),
                ("params", sanitise(&parse_params(&call.args))),
                ("call_id", json!(call.call_id)),
                ("run_id", json!(origin.run_id)),
                ("agent_id", json!(origin.agent_id)),
                ("iteration", json!(origin.iteration)),
            ])
        });
        Self {
            telemetry,
            call,
            origin,
            started: Instant::now(),
            is_end_emitted: false,
        }
    }

    pub(crate) fn finish(mut self, envelope: &ToolEnvelope) {
        self.is_end_emitted = true;
        match &envelope.result {
            Err(failure) if failure.kind == ToolErrorKind::Timeout => {
                self.emit_end(CallStage::Exception, "reason", || {
                    outcome_value(self.call, envelope)
                });
            }
            Ok(_) | Err(_) => self.emit_end(CallStage::Stop, "result", || {
                outcome_value(self.call, envelope)
            }),
        }
    }

    fn emit_end(&self, stage: CallStage, what: &'static str, outcome: impl FnOnce() -> Value) {
        let duration = self.started.elapsed();
        let ended = Measurements::Ended {
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            duration: nanoseconds(duration),
        };
        self.telemetry.emit(stage, ended, || {
            metadata([
                ("tool_name", json!(self.call.name)),
                (what, sanitise(&outcome())),
                ("call_id", json!(self.call.call_id)),
                ("run_id", json!(self.origin.run_id)),
                ("agent_id", json!(self.origin.agent_id)),
                ("thread_id", json!(self.origin.thread_id)),
            ])
        });
    }
}

impl Drop for CallSpan<'_> {
    fn drop(&mut self) {
        if !self.is_end_emitted {
            let cut = || json!({"error": {"type": "cancelled", "message": "it was cut short"}});
            self.emit_end(CallStage::Stop, "result", cut);
        }
    }
}

fn metadata<const N: usize>(pairs: [(&str, Value); N]) -> EventMetadata {
    pairs
        .map(|(key, value)| (key.to_owned(), value))
        .into_iter()
        .collect()
}

/// Parses arguments that are JSON text, so that secrets in them are found.
fn parse_params(args: &Value) -> Value {
    match args {
        Value::String(text) => serde_json::from_str(text).unwrap_or(json!({})),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            args.clone()
        }
    }
}

/// Returns the result of a call: `ok` with the value, or `error` with its type; and the effects.
fn outcome_value(call: &ToolCall, envelope: &ToolEnvelope) -> Value {
    let effects = &envelope.effects;
    match &envelope.result {
        Ok(_) => {
            let told = || Value::from(envelope.to_model_text());
            let value = envelope.value.clone().unwrap_or_else(told);
            json!({"ok": value, "effects": effects})
        }
        Err(failure) => json!({
            "error": {
                "type": failure.kind,
                "message": failure.message,
                "tool_name": call.name,
                "details": failure.details,
            },
            "effects": effects,
        }),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
