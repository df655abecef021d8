//! Tests of tool events in the log.

use super::{empty_scope, multiply};
use serde_json::json;
use std::{
    fmt::Debug,
    sync::{Arc, Mutex},
};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};
use turnery_tools::{ExecuteOptions, execute};

/// Collects log events as `level target field=value ...`.
#[derive(Clone, Default)]
struct LogCollector(Arc<Mutex<Vec<String>>>);

struct LogLine(String);

impl Visit for LogLine {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

impl Subscriber for LogCollector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::DEBUG && metadata.target() == "turnery::tool"
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut line = LogLine(format!("{} {}", metadata.level(), metadata.target()));
        event.record(&mut line);
        self.0.lock().expect("a log").push(line.0);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

// proves: JIDO-55
#[tokio::test(start_paused = true)]
async fn calls_are_logged_at_debug_level_without_secrets() {
    let kept = LogCollector::default();
    // With a single subscriber in the process, tracing caches the interest of whichever thread logs first: a
    // parallel test without a subscriber would decide for this one.
    let _other = tracing::Dispatch::new(LogCollector::default());
    let guard = tracing::subscriber::set_default(kept.clone());
    let scope = empty_scope().with_tools(multiply().into());
    let args = json!({"a": 6, "b": 7, "password": "sk-1"});
    execute("multiply", args, &scope, &ExecuteOptions::default()).await;
    drop(guard);
    let lines = kept.0.lock().expect("a log").clone();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("DEBUG turnery::tool event=turnery.tool.execute.start"));
    assert!(lines[0].contains(r#""params":{"a":6,"b":7,"password":"[REDACTED]"}"#));
    assert!(lines[1].contains("event=turnery.tool.execute.stop"));
    assert!(lines[1].contains(r#""result":{"#) && lines[1].contains("42"));
    assert!(!lines.join("").contains("sk-1"));
}
