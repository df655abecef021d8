//! Tests of tools made from functions.

use super::{empty_scope, multiply};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use turnery_engine::{Content, ToolEnvelope, ToolError, ToolErrorKind};
use turnery_tools::{Access, ExecuteOptions, FunctionTool, Tool, execute_tool};

// proves: JIDO-6, JIDO-38
#[tokio::test]
async fn function_tool_has_name_schema_and_result() {
    let tool = multiply();
    assert_eq!(tool.spec().name, "multiply");
    let schema = &tool.spec().schema;
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["properties"]["a"]["type"], "integer");
    assert_eq!(schema["required"], json!(["a", "b"]));
    let args = json!({"a": 6, "b": 7});
    let done = execute_tool(
        Arc::new(tool),
        args,
        &empty_scope(),
        &ExecuteOptions::default(),
    )
    .await;
    assert_eq!(done.value, Some(json!({"product": 42})));
}

fn failure() -> ToolError {
    ToolError {
        kind: ToolErrorKind::ExecutionError,
        message: "no".to_owned(),
        details: None,
    }
}

async fn run(tool: FunctionTool) -> ToolEnvelope {
    execute_tool(
        Arc::new(tool),
        json!({}),
        &empty_scope(),
        &ExecuteOptions::default(),
    )
    .await
}

// proves: JIDO-38, JIDO-43, JIDO-76
#[tokio::test]
async fn all_return_forms_become_envelopes() {
    let pair = run(FunctionTool::new("t", "", async |_: Value, _| {
        Err::<Value, _>(failure())
    }));
    let pair = pair.await;
    assert_eq!((pair.result, pair.effects), (Err(failure()), Vec::new()));
    let effect = json!({"kind": "emit", "type": "done"});
    let given = vec![effect.clone()];
    let triple = run(FunctionTool::new("t", "", move |_: Value, _| {
        let given = given.clone();
        async move { (Err::<Value, _>(failure()), given) }
    }));
    let triple = triple.await;
    assert_eq!(
        (triple.result, triple.effects),
        (Err(failure()), vec![effect])
    );
    let whole = run(FunctionTool::new("t", "", async |_: Value, _| {
        ToolEnvelope::text("as it is")
    }));
    let whole = whole.await;
    assert_eq!(whole.result, Ok(vec![Content::text("as it is")]));
}

#[tokio::test]
async fn panic_before_first_poll_is_a_failure() {
    let broken = FunctionTool::new("t", "", |_: Value, _| {
        assert!(std::env::args().count() == 0, "of its own");
        std::future::ready(ToolEnvelope::text(""))
    });
    let done = run(broken).await;
    let failure = done.result.expect_err("a failure");
    assert_eq!(failure.kind, ToolErrorKind::Exception);
    assert_eq!(failure.message, "t panicked: of its own");
}

#[tokio::test]
async fn function_tool_needs_no_permission_and_sets_timeout() {
    let tool = multiply().with_timeout(Duration::from_secs(90));
    let cx = turnery_tools::ToolCx {
        call_id: "c".into(),
        origin: turnery_tools::Origin::default(),
        workspace: empty_scope().workspace,
        hidden: turnery_tools::HiddenFiles::default(),
        line_limits: turnery_tools::CommandLineLimits::default(),
        progress: tokio::sync::mpsc::channel(1).0,
        cancel: tokio_util::sync::CancellationToken::new(),
        trace: turnery_tools::TraceContext::default(),
        caller: None,
        host: None,
    };
    let prepared = tool.prepare(&json!({}), &cx).await.expect("prepared");
    assert_eq!(prepared.access, Access::Nothing);
    assert_eq!(prepared.detail.title, "multiply");
    assert_eq!(tool.timeout(&json!({})), Duration::from_secs(90));
    assert_eq!(multiply().timeout(&json!({})), Duration::from_secs(30));
}
