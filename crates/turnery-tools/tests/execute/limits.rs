//! How long a tool may take.

use super::{asking, kind, scope};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;
use turnery_engine::{FailureKind, ToolFailure};
use turnery_tools::{Action, Options, Toolbox, execute, run_tools};

fn hanging() -> Toolbox {
    Action::new("hang", "", async |_: Value, _| {
        std::future::pending::<Result<Value, ToolFailure>>().await
    })
    .into()
}

// proves: JIDO-68, JIDO-69, JIDO-70, JIDO-76
#[tokio::test(start_paused = true)]
async fn thirty_seconds_unless_somebody_says_otherwise() {
    let scope = scope().with_tools(hanging());
    let began = Instant::now();
    let done = execute("hang", json!({}), &scope, &Options::default()).await;
    assert_eq!(began.elapsed(), Duration::from_millis(30_000));
    assert_eq!(kind(&done), FailureKind::Timeout);
    assert!(done.effects.is_empty());
    let failure = serde_json::to_value(done.result.expect_err("a failure")).expect("JSON");
    assert_eq!(failure["kind"], "timeout");
    assert_eq!(failure["details"], json!({"timeout_ms": 30_000}));
}

// proves: JIDO-28
#[tokio::test(start_paused = true)]
async fn the_option_bounds_each_call_of_an_answer() {
    let scope = scope().with_tools(hanging());
    let options = Options {
        timeout_ms: Some(250),
        ..Options::default()
    };
    let response = asking(&[("c1", "hang", json!({})), ("c2", "hang", json!({}))]);
    let began = Instant::now();
    let executed = run_tools(&response, &scope, &options).await;
    assert_eq!(began.elapsed(), Duration::from_millis(500));
    for result in &executed.tool_results {
        let failure = result.raw_result().result.clone().expect_err("a failure");
        assert_eq!(failure.kind, FailureKind::Timeout);
        assert_eq!(failure.details, Some(json!({"timeout_ms": 250})));
    }
}

// proves: JIDO-28, C-21
#[tokio::test(start_paused = true)]
async fn the_option_may_also_give_a_tool_more_time() {
    let slow = Action::new("slow", "", async |_: Value, _| {
        tokio::time::sleep(Duration::from_secs(40)).await;
        Ok::<Value, ToolFailure>(json!("done"))
    });
    let scope = scope().with_tools(slow.into());
    let options = Options {
        timeout_ms: Some(60_000),
        ..Options::default()
    };
    let done = execute("slow", json!({}), &scope, &options).await;
    assert_eq!(done.value, Some(json!("done")));
}
