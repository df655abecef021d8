//! Tests of the events that subscribers receive.

use super::{empty_scope, multiply, response_with_calls};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use turnery_engine::{ToolError, ToolErrorKind};
use turnery_tools::{
    ExecuteOptions, ExecuteScope, FunctionTool, Origin, ToolTelemetry, Toolbox, execute, run_tools,
    telemetry::{AttachError, CallStage, EventPath, Measurements},
};

/// An event as received by a subscriber.
#[derive(Clone, Debug, PartialEq)]
struct ReceivedEvent {
    path: String,
    measurements: Measurements,
    metadata: Value,
    config: Value,
}

type EventLog = Arc<Mutex<Vec<ReceivedEvent>>>;

fn attach(observe: &ToolTelemetry, id: &str, path: EventPath, config: Value) -> EventLog {
    let log = EventLog::default();
    let kept = Arc::clone(&log);
    let handler = move |path: &EventPath, measurements: &Measurements, metadata: &_, config: &_| {
        let metadata: &serde_json::Map<String, Value> = metadata;
        let config: &Value = config;
        kept.lock().expect("a log").push(ReceivedEvent {
            path: path.to_string(),
            measurements: *measurements,
            metadata: Value::Object(metadata.clone()),
            config: config.clone(),
        });
    };
    observe.attach(id, path, handler, config).expect("attached");
    log
}

/// Subscribes to all three events of these tools.
fn subscribe_all(tools: &Toolbox) -> [EventLog; 3] {
    let observe = tools.telemetry();
    [CallStage::Start, CallStage::Stop, CallStage::Exception].map(|stage| {
        let path = observe.event_path(stage).clone();
        attach(observe, &path.to_string(), path, Value::Null)
    })
}

fn received_events(log: &EventLog) -> Vec<ReceivedEvent> {
    log.lock().expect("a log").clone()
}

fn session_scope(tools: Toolbox) -> ExecuteScope {
    ExecuteScope {
        origin: Origin {
            run_id: Some("s.m.1".into()),
            agent_id: Some("turnery".into()),
            thread_id: Some("s".into()),
            iteration: Some(3),
        },
        ..empty_scope().with_tools(tools)
    }
}

fn sleeping_tool() -> Toolbox {
    FunctionTool::new("sleep", "", async |_: Value, _| {
        tokio::time::sleep(Duration::from_micros(250_500)).await;
        Ok::<Value, ToolError>(json!({"slept": true}))
    })
    .into()
}

fn nanoseconds_now() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    now.as_nanos().try_into().expect("before 2554")
}

// proves: JIDO-55, JIDO-56, JIDO-57
#[tokio::test(start_paused = true)]
async fn start_event_has_time_and_metadata() {
    let tools = sleeping_tool();
    let [starts, _, _] = subscribe_all(&tools);
    let before = nanoseconds_now();
    let response = response_with_calls(&[("c1", "sleep", json!({"path": "a", "api_key": "sk-1"}))]);
    run_tools(&response, &session_scope(tools), &ExecuteOptions::default()).await;
    let [start] = &received_events(&starts)[..] else {
        panic!("one start");
    };
    let Measurements::Began { system_time } = start.measurements else {
        panic!("a start measures the time");
    };
    assert!((before..=nanoseconds_now()).contains(&system_time));
    assert_eq!(
        start.metadata,
        json!({
            "tool_name": "sleep",
            "params": {"path": "a", "api_key": "[REDACTED]"},
            "call_id": "c1",
            "run_id": "s.m.1",
            "agent_id": "turnery",
            "iteration": 3
        })
    );
}

// proves: JIDO-58, JIDO-59, JIDO-63
#[tokio::test(start_paused = true)]
async fn stop_event_has_duration_and_result() {
    let tools = sleeping_tool();
    let [_, stops, exceptions] = subscribe_all(&tools);
    let response = response_with_calls(&[("c1", "sleep", json!({}))]);
    run_tools(&response, &session_scope(tools), &ExecuteOptions::default()).await;
    let [stop] = &received_events(&stops)[..] else {
        panic!("one stop");
    };
    // The clock of the runtime counts whole milliseconds.
    let measured = serde_json::to_value(stop.measurements).expect("JSON");
    assert_eq!(
        measured,
        json!({"duration_ms": 251, "duration": 251_000_000})
    );
    assert_eq!(
        stop.metadata,
        json!({
            "tool_name": "sleep",
            "result": {"ok": {"slept": true}, "effects": []},
            "call_id": "c1",
            "run_id": "s.m.1",
            "agent_id": "turnery",
            "thread_id": "s"
        })
    );
    assert_eq!(received_events(&exceptions), []);
}

// proves: JIDO-60, JIDO-61, UP-23
#[tokio::test(start_paused = true)]
async fn timeout_emits_exception_event() {
    let tools = sleeping_tool();
    let [starts, stops, exceptions] = subscribe_all(&tools);
    let options = ExecuteOptions {
        timeout_ms: Some(100),
        ..ExecuteOptions::default()
    };
    let response = response_with_calls(&[("c1", "sleep", json!({}))]);
    run_tools(&response, &session_scope(tools), &options).await;
    assert_eq!(
        (
            received_events(&starts).len(),
            received_events(&stops).len()
        ),
        (1, 0)
    );
    let [exception] = &received_events(&exceptions)[..] else {
        panic!("one exception");
    };
    assert_eq!(
        exception.measurements,
        Measurements::Ended {
            duration_ms: 100,
            duration: 100_000_000
        }
    );
    assert_eq!(
        exception.metadata,
        json!({
            "tool_name": "sleep",
            "reason": {
                "error": {
                    "type": "timeout",
                    "message": "sleep ran longer than 100ms and was stopped",
                    "tool_name": "sleep",
                    "details": {"timeout_ms": 100}
                },
                "effects": []
            },
            "call_id": "c1",
            "run_id": "s.m.1",
            "agent_id": "turnery",
            "thread_id": "s"
        })
    );
}

// proves: JIDO-59, UP-23
#[tokio::test]
async fn other_failures_emit_stop_event_with_error() {
    let broken = FunctionTool::new("broken", "", async |_: Value, _| {
        Err::<Value, _>(ToolError {
            kind: ToolErrorKind::ExecutionError,
            message: "no".to_owned(),
            details: None,
        })
    });
    let panicking = FunctionTool::new("panicking", "", async |args: Value, _| {
        assert!(args.is_null(), "of its own");
        Ok::<Value, ToolError>(Value::Null)
    });
    let tools = super::toolbox(vec![broken, panicking, multiply()]);
    let [starts, stops, exceptions] = subscribe_all(&tools);
    let response = response_with_calls(&[
        ("c1", "nothing", json!({})),
        ("c2", "broken", json!({})),
        ("c3", "panicking", json!({})),
        ("c4", "multiply", json!({"a": 1})),
    ]);
    run_tools(
        &response,
        &empty_scope().with_tools(tools),
        &ExecuteOptions::default(),
    )
    .await;
    assert_eq!(received_events(&starts).len(), 4);
    assert_eq!(received_events(&exceptions), []);
    let kinds: Vec<Value> = received_events(&stops)
        .iter()
        .map(|stop| stop.metadata["result"]["error"]["type"].clone())
        .collect();
    assert_eq!(
        kinds,
        ["not_found", "execution_error", "exception", "validation"]
    );
    // Outside a session the thread is unknown, but the keys are present.
    assert_eq!(
        received_events(&stops)[0].metadata["thread_id"],
        Value::Null
    );
    assert!(received_events(&stops)[0].metadata.get("run_id").is_some());
}

// proves: JIDO-62
#[test]
fn event_paths_use_prefix() {
    let observe = ToolTelemetry::new("jido.ai");
    let path = observe.event_path(CallStage::Exception);
    let words: Vec<&str> = path.segments().collect();
    assert_eq!(words, ["jido", "ai", "tool", "execute", "exception"]);
    let ours = ToolTelemetry::default();
    let paths = [CallStage::Start, CallStage::Stop].map(|stage| ours.event_path(stage).to_string());
    assert_eq!(
        paths,
        ["turnery.tool.execute.start", "turnery.tool.execute.stop"]
    );
}

// proves: JIDO-63
#[tokio::test]
async fn subscriber_gets_its_path_and_config() {
    let observe = ToolTelemetry::new("mine");
    let tools = Toolbox::from(multiply()).with_telemetry(observe.clone());
    let config = json!({"unit": "ms"});
    let path = EventPath::from("mine.tool.execute.stop");
    let log = attach(&observe, "my-tool-timer", path.clone(), config.clone());
    let scope = empty_scope().with_tools(tools);
    let args = json!({"a": 6, "b": 7});
    execute("multiply", args.clone(), &scope, &ExecuteOptions::default()).await;
    let [only] = &received_events(&log)[..] else {
        panic!("one event");
    };
    assert_eq!(only.path, "mine.tool.execute.stop");
    assert_eq!(only.config, config);
    assert_eq!(only.metadata["result"]["ok"], json!({"product": 42}));
    let again = observe.attach("my-tool-timer", path, |_, _, _, _| {}, Value::Null);
    let id = "my-tool-timer".to_owned();
    assert_eq!(again, Err(AttachError { id }));
    assert!(observe.detach("my-tool-timer"));
    assert!(!observe.detach("my-tool-timer"));
    execute("multiply", args, &scope, &ExecuteOptions::default()).await;
    assert_eq!(received_events(&log).len(), 1);
}

#[tokio::test]
async fn panicking_subscriber_is_detached() {
    let tools = Toolbox::from(multiply());
    let observe = tools.telemetry().clone();
    let stop = observe.event_path(CallStage::Stop).clone();
    let calls = Arc::new(Mutex::new(0));
    let count = Arc::clone(&calls);
    let panics = move |_: &_, _: &_, _: &_, _: &_| {
        *count.lock().expect("a count") += 1;
        std::panic::resume_unwind(Box::new("of its own"));
    };
    observe
        .attach("broken", stop.clone(), panics, Value::Null)
        .expect("attached");
    let log = attach(&observe, "whole", stop, Value::Null);
    let scope = empty_scope().with_tools(tools);
    for _ in 0..2 {
        let args = json!({"a": 6, "b": 7});
        let done = execute("multiply", args, &scope, &ExecuteOptions::default()).await;
        assert_eq!(done.value, Some(json!({"product": 42})));
    }
    assert_eq!(*calls.lock().expect("a count"), 1);
    assert_eq!(received_events(&log).len(), 2);
    assert!(!observe.detach("broken"));
}

#[tokio::test]
async fn subscriber_can_attach_and_detach_in_handler() {
    let tools = Toolbox::from(multiply());
    let observe = tools.telemetry().clone();
    let start = observe.event_path(CallStage::Start).clone();
    let own = observe.clone();
    let once = move |_: &_, _: &_, _: &_, _: &_| assert!(own.detach("once"));
    observe
        .attach("once", start, once, Value::Null)
        .expect("attached");
    let scope = empty_scope().with_tools(tools);
    let args = json!({"a": 6, "b": 7});
    execute("multiply", args, &scope, &ExecuteOptions::default()).await;
    assert!(!observe.detach("once"));
}

#[tokio::test]
async fn dropped_call_emits_stop_event() {
    let hang = FunctionTool::new("hang", "", async |_: Value, _| {
        std::future::pending::<Result<Value, ToolError>>().await
    });
    let tools = Toolbox::from(hang);
    let [starts, stops, _] = subscribe_all(&tools);
    let scope = empty_scope().with_tools(tools);
    let options = ExecuteOptions::default();
    let mut call = Box::pin(execute("hang", json!({}), &scope, &options));
    assert!(futures_util::poll!(&mut call).is_pending());
    assert_eq!(
        (
            received_events(&starts).len(),
            received_events(&stops).len()
        ),
        (1, 0)
    );
    drop(call);
    let [stop] = &received_events(&stops)[..] else {
        panic!("one stop");
    };
    assert_eq!(stop.metadata["result"]["error"]["type"], "cancelled");
}

// proves: JIDO-64
#[tokio::test]
async fn secrets_in_args_and_results_are_redacted() {
    let leaky = FunctionTool::new("leaky", "", async |_: Value, _| {
        Ok::<Value, ToolError>(json!({"token": "sk-1", "n": 1}))
    });
    let tools = Toolbox::from(leaky);
    let [starts, stops, _] = subscribe_all(&tools);
    let scope = empty_scope().with_tools(tools);
    for args in [json!("{\"password\": \"sk-1\"}"), json!("password: sk-1")] {
        execute("leaky", args, &scope, &ExecuteOptions::default()).await;
    }
    let params: Vec<Value> = received_events(&starts)
        .iter()
        .map(|start| start.metadata["params"].clone())
        .collect();
    assert_eq!(params, [json!({"password": "[REDACTED]"}), json!({})]);
    let result = &received_events(&stops)[0].metadata["result"];
    assert_eq!(result["ok"], json!({"token": "[REDACTED]", "n": 1}));
}
