//! Watch: one call from its start to its end, told to the subscribers.

use super::{Measurements, Metadata, Observe, Stage, sanitise};
use crate::Origin;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;
use turnery_engine::{FailureKind, ToolCall, ToolEnvelope};

/// A call that has started. When it is dropped before its end was told, it was cut short.
pub(crate) struct Watch<'a> {
    observe: &'a Observe,
    call: &'a ToolCall,
    origin: &'a Origin,
    began: Instant,
    is_told: bool,
}

impl<'a> Watch<'a> {
    pub(crate) fn start(observe: &'a Observe, call: &'a ToolCall, origin: &'a Origin) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let began = Measurements::Began {
            system_time: nanoseconds(now.unwrap_or_default()),
        };
        observe.emit(Stage::Start, began, || {
            metadata([
                ("tool_name", json!(call.name)),
                ("params", sanitise(&params(&call.args))),
                ("call_id", json!(call.call_id)),
                ("run_id", json!(origin.run_id)),
                ("agent_id", json!(origin.agent_id)),
                ("iteration", json!(origin.iteration)),
            ])
        });
        Self {
            observe,
            call,
            origin,
            began: Instant::now(),
            is_told: false,
        }
    }

    pub(crate) fn end(mut self, envelope: &ToolEnvelope) {
        self.is_told = true;
        match &envelope.result {
            Err(failure) if failure.kind == FailureKind::Timeout => {
                self.tell(Stage::Exception, "reason", || outcome(self.call, envelope));
            }
            Ok(_) | Err(_) => self.tell(Stage::Stop, "result", || outcome(self.call, envelope)),
        }
    }

    fn tell(&self, stage: Stage, what: &'static str, outcome: impl FnOnce() -> Value) {
        let duration = self.began.elapsed();
        let ended = Measurements::Ended {
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            duration: nanoseconds(duration),
        };
        self.observe.emit(stage, ended, || {
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

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.is_told {
            let cut = || json!({"error": {"type": "cancelled", "message": "it was cut short"}});
            self.tell(Stage::Stop, "result", cut);
        }
    }
}

fn metadata<const N: usize>(pairs: [(&str, Value); N]) -> Metadata {
    pairs
        .map(|(key, value)| (key.to_owned(), value))
        .into_iter()
        .collect()
}

/// Arguments as a value: a secret in the text of one would not be seen.
fn params(args: &Value) -> Value {
    match args {
        Value::String(text) => serde_json::from_str(text).unwrap_or(json!({})),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            args.clone()
        }
    }
}

/// What came of it: `ok` with the value, or `error` with its type; and the effects.
fn outcome(call: &ToolCall, envelope: &ToolEnvelope) -> Value {
    let effects = &envelope.effects;
    match &envelope.result {
        Ok(_) => {
            let told = || Value::from(envelope.told_text());
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
