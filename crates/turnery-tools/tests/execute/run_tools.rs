//! Tests of running all calls of a response.

use super::{empty_scope, failure_kind, multiply, response_with_calls, toolbox};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use turnery_engine::{
    Content, Message, ModelStop, Response, ResponseKind, ResponseOverrides, ToolError,
    ToolErrorKind,
};
use turnery_tools::{ExecuteOptions, ExecuteScope, FunctionTool, run_tools};

fn two_products() -> Response {
    response_with_calls(&[
        ("c1", "multiply", json!({"a": 6, "b": 7})),
        ("c2", "multiply", json!({"a": 2, "b": 3})),
    ])
}

// proves: JIDO-18, JIDO-21, JIDO-22, JIDO-23, JIDO-24, JIDO-14, JIDO-19, JIDO-73
#[tokio::test]
async fn every_call_gets_a_result() {
    let scope = empty_scope().with_tools(multiply().into());
    let executed = run_tools(&two_products(), &scope, &ExecuteOptions::default()).await;
    let told: Vec<_> = executed
        .tool_results
        .iter()
        .map(|result| (result.id().as_str(), result.name(), result.content()))
        .collect();
    assert_eq!(
        told,
        [
            ("c1", "multiply", "{\"product\":42}"),
            ("c2", "multiply", "{\"product\":6}")
        ]
    );
    let raw = executed.tool_results[0].raw_result();
    assert_eq!(raw.value, Some(json!({"product": 42})));
}

// proves: JIDO-26
#[tokio::test]
async fn tools_can_come_with_options() {
    let options = ExecuteOptions {
        tools: Some(multiply().into()),
        ..ExecuteOptions::default()
    };
    let executed = run_tools(&two_products(), &empty_scope(), &options).await;
    let results = executed.tool_results.iter().map(|result| result.content());
    let expected = ["{\"product\":42}", "{\"product\":6}"];
    assert_eq!(results.collect::<Vec<_>>(), expected);
}

// proves: JIDO-14, JIDO-19
#[tokio::test]
async fn given_response_is_not_modified() {
    let scope = empty_scope().with_tools(multiply().into());
    let response = two_products();
    let executed = run_tools(&response, &scope, &ExecuteOptions::default()).await;
    assert_eq!(response, two_products());
    assert_eq!(executed.with_tool_results(Vec::new()), response);
}

// proves: JIDO-75
#[tokio::test]
async fn response_without_calls_is_returned_unchanged() {
    for stop in [ModelStop::EndTurn, ModelStop::ToolUse] {
        let response = Response {
            content: vec![Content::text("42")],
            stop,
            ..response_with_calls(&[])
        };
        let same = run_tools(&response, &empty_scope(), &ExecuteOptions::default()).await;
        assert_eq!(same, response);
    }
}

/// Returns a tool that takes `takes` milliseconds and records its start and end.
fn slow_tool(name: &'static str, takes: u64, log: &Arc<Mutex<Vec<String>>>) -> FunctionTool {
    let log = Arc::clone(log);
    FunctionTool::new(name, "", move |_: Value, _| {
        let log = Arc::clone(&log);
        async move {
            log.lock().expect("a log").push(format!("{name} began"));
            tokio::time::sleep(Duration::from_millis(takes)).await;
            log.lock().expect("a log").push(format!("{name} ended"));
            Ok::<Value, ToolError>(Value::Null)
        }
    })
}

// proves: JIDO-47, C-6
#[tokio::test(start_paused = true)]
async fn calls_run_sequentially_in_order() {
    let log = Arc::default();
    let tools = toolbox(vec![
        slow_tool("quick", 1, &log),
        slow_tool("slow", 50, &log),
    ]);
    let response = response_with_calls(&[("c1", "slow", json!({})), ("c2", "quick", json!({}))]);
    let scope = empty_scope().with_tools(tools);
    let executed = run_tools(&response, &scope, &ExecuteOptions::default()).await;
    assert_eq!(
        *log.lock().expect("a log"),
        ["slow began", "slow ended", "quick began", "quick ended"]
    );
    let ids: Vec<_> = executed
        .tool_results
        .iter()
        .map(|result| result.id().as_str())
        .collect();
    assert_eq!(ids, ["c1", "c2"]);
}

// proves: JIDO-65, JIDO-18, JIDO-21, JIDO-22, JIDO-24
#[tokio::test]
async fn unknown_tool_gets_a_failed_result() {
    let scope = empty_scope().with_tools(multiply().into());
    let response = response_with_calls(&[
        ("c1", "divide", json!({})),
        ("c2", "multiply", json!({"a": 1, "b": 1})),
    ]);
    let executed = run_tools(&response, &scope, &ExecuteOptions::default()).await;
    let [unknown, known] = &executed.tool_results[..] else {
        panic!("two results");
    };
    assert_eq!(failure_kind(unknown.raw_result()), ToolErrorKind::NotFound);
    assert_eq!(
        unknown.content(),
        "there is no tool \"divide\"; the tools are multiply"
    );
    assert_eq!(known.content(), "{\"product\":1}");
    let of = [unknown, known].map(|result| (result.id().as_str(), result.name()));
    assert_eq!(of, [("c1", "divide"), ("c2", "multiply")]);
}

// proves: JIDO-31, JIDO-3
#[tokio::test]
async fn executed_response_makes_valid_history() {
    let scope = empty_scope().with_tools(multiply().into());
    let call = |id: &str, arguments: &str| {
        json!({"id": id, "type": "function",
            "function": {"name": "multiply", "arguments": arguments}})
    };
    let calls = [
        call("c1", "{\"a\":6,\"b\":7}"),
        call("c2", "{\"a\":2,\"b\":3}"),
    ];
    let map = json!({"model": "m", "choices": [{"message": {"tool_calls": calls},
        "finish_reason": "tool_calls"}]});
    let response = Response::from_response(map, ResponseOverrides::default()).unwrap();
    assert_eq!(response.kind(), ResponseKind::ToolCalls);
    assert!(response.needs_tools());
    let executed = run_tools(&response, &scope, &ExecuteOptions::default()).await;
    let mut history = vec![Message::User {
        content: vec![Content::text("What is 6 * 7, and 2 * 3?")],
    }];
    history.push(executed.assistant_message());
    history.extend(executed.tool_messages());
    let said: Vec<String> = history
        .iter()
        .map(|message| match message {
            Message::System { .. } => "system".to_owned(),
            Message::User { .. } => "user".to_owned(),
            Message::Assistant { .. } => {
                let ids: Vec<&str> = message.calls().map(|call| call.call_id.as_str()).collect();
                format!("asks {}", ids.join(" "))
            }
            Message::ToolResult { call_id, .. } => format!("{call_id}: {}", message.text()),
        })
        .collect();
    assert_eq!(
        said,
        [
            "user",
            "asks c1 c2",
            "c1: {\"product\":42}",
            "c2: {\"product\":6}"
        ]
    );
}

#[tokio::test]
async fn calls_after_cancel_get_cancelled_results() {
    let scope = empty_scope();
    let cancel = scope.cancel.clone();
    let stop = FunctionTool::new("stop", "", move |_: Value, _| {
        cancel.cancel();
        async { Ok::<Value, ToolError>(json!("stopped")) }
    });
    let log = Arc::default();
    let tools = toolbox(vec![stop, slow_tool("slow", 1, &log)]);
    let scope = ExecuteScope {
        tools: Some(tools),
        ..scope
    };
    let response = response_with_calls(&[("c1", "stop", json!({})), ("c2", "slow", json!({}))]);
    let executed = run_tools(&response, &scope, &ExecuteOptions::default()).await;
    let [stopped, unrun] = &executed.tool_results[..] else {
        panic!("two results");
    };
    assert_eq!(stopped.content(), "\"stopped\"");
    assert_eq!(failure_kind(unrun.raw_result()), ToolErrorKind::Cancelled);
    assert!(log.lock().expect("a log").is_empty());
}
