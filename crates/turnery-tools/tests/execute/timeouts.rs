//! Tests of the time limits of tools.

use super::{empty_scope, failure_kind, response_with_calls};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;
use turnery_engine::{ToolError, ToolErrorKind};
use turnery_tools::{ExecuteOptions, FunctionTool, Toolbox, execute, run_tools};

fn hanging_tool() -> Toolbox {
    FunctionTool::new("hang", "", async |_: Value, _| {
        std::future::pending::<Result<Value, ToolError>>().await
    })
    .into()
}

// proves: JIDO-68, JIDO-69, JIDO-70, JIDO-76
#[tokio::test(start_paused = true)]
async fn default_timeout_is_30_seconds() {
    let scope = empty_scope().with_tools(hanging_tool());
    let began = Instant::now();
    let done = execute("hang", json!({}), &scope, &ExecuteOptions::default()).await;
    assert_eq!(began.elapsed(), Duration::from_millis(30_000));
    assert_eq!(failure_kind(&done), ToolErrorKind::Timeout);
    assert!(done.effects.is_empty());
    let failure = serde_json::to_value(done.result.expect_err("a failure")).expect("JSON");
    assert_eq!(failure["kind"], "timeout");
    assert_eq!(failure["details"], json!({"timeout_ms": 30_000}));
}

// proves: JIDO-28, JIDO-69
#[tokio::test(start_paused = true)]
async fn timeout_option_bounds_each_call() {
    let scope = empty_scope().with_tools(hanging_tool());
    let options = ExecuteOptions {
        timeout_ms: Some(250),
        ..ExecuteOptions::default()
    };
    let response = response_with_calls(&[("c1", "hang", json!({})), ("c2", "hang", json!({}))]);
    let began = Instant::now();
    let executed = run_tools(&response, &scope, &options).await;
    assert_eq!(began.elapsed(), Duration::from_millis(500));
    for result in &executed.tool_results {
        let failure = result.raw_result().result.clone().expect_err("a failure");
        assert_eq!(failure.kind, ToolErrorKind::Timeout);
        assert_eq!(failure.details, Some(json!({"timeout_ms": 250})));
    }
}

// proves: JIDO-28, C-21
#[tokio::test(start_paused = true)]
async fn timeout_option_can_extend_tool_timeout() {
    let slow = FunctionTool::new("slow", "", async |_: Value, _| {
        tokio::time::sleep(Duration::from_secs(40)).await;
        Ok::<Value, ToolError>(json!("done"))
    });
    let scope = empty_scope().with_tools(slow.into());
    let options = ExecuteOptions {
        timeout_ms: Some(60_000),
        ..ExecuteOptions::default()
    };
    let done = execute("slow", json!({}), &scope, &options).await;
    assert_eq!(done.value, Some(json!("done")));
}
