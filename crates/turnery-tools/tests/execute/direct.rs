//! Tests of running one tool by its name or by reference.

use super::{empty_scope, failure_kind, multiply, toolbox};
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_engine::{Content, ToolError, ToolErrorKind};
use turnery_tools::{ExecuteOptions, FunctionTool, Toolbox, execute, execute_tool};

/// Returns a tool that must not run.
fn wrong_tool(name: &str) -> FunctionTool {
    FunctionTool::new(name, "", async |_: Value, _| {
        Ok::<Value, ToolError>(json!("the wrong one"))
    })
}

// proves: JIDO-36, JIDO-37, JIDO-41, JIDO-66
#[tokio::test]
async fn tool_runs_by_name() {
    let options = ExecuteOptions {
        tools: Some(toolbox(vec![wrong_tool("add"), multiply()])),
        ..ExecuteOptions::default()
    };
    let done = execute(
        "multiply",
        json!({"a": 6, "b": 7}),
        &empty_scope(),
        &options,
    )
    .await;
    assert_eq!(done.result, Ok(vec![Content::text("{\"product\":42}")]));
    assert_eq!(done.value, Some(json!({"product": 42})));
    assert!(done.effects.is_empty());
}

// proves: JIDO-38
#[tokio::test]
async fn tool_runs_by_reference() {
    let scope = empty_scope().with_tools(wrong_tool("multiply").into());
    let done = execute_tool(
        Arc::new(multiply()),
        json!({"a": 6, "b": 7}),
        &scope,
        &ExecuteOptions::default(),
    )
    .await;
    assert_eq!(done.value, Some(json!({"product": 42})));
    assert!(done.effects.is_empty());
}

// proves: JIDO-39, JIDO-40
#[tokio::test]
async fn arguments_are_normalised_by_name_and_by_reference() {
    let scope = empty_scope().with_tools(multiply().into());
    for args in [
        json!({"a": "6", "b": "7"}),
        json!("{\"a\": 6, \"b\": \"7\"}"),
        json!({"a": 6.0, "b": 7}),
    ] {
        let options = ExecuteOptions::default();
        let by_name = execute("multiply", args.clone(), &scope, &options).await;
        assert_eq!(by_name.value, Some(json!({"product": 42})), "{args}");
        let tool = Arc::new(multiply());
        let by_reference = execute_tool(tool, args.clone(), &scope, &options).await;
        assert_eq!(by_reference.value, Some(json!({"product": 42})), "{args}");
    }
}

// proves: JIDO-42, JIDO-76
#[tokio::test]
async fn invalid_arguments_are_validation_failure() {
    let scope = empty_scope().with_tools(multiply().into());
    for args in [json!({"a": 6}), json!("{oops"), json!([6, 7])] {
        let done = execute("multiply", args, &scope, &ExecuteOptions::default()).await;
        assert_eq!(failure_kind(&done), ToolErrorKind::Validation);
        assert!(done.effects.is_empty());
    }
    let nameless = execute("", json!({}), &scope, &ExecuteOptions::default()).await;
    assert_eq!(failure_kind(&nameless), ToolErrorKind::Validation);
}

// proves: JIDO-65, JIDO-66
#[tokio::test]
async fn unknown_or_miscased_name_is_not_found() {
    let scope = empty_scope().with_tools(multiply().into());
    for name in ["divide", "Multiply"] {
        let done = execute(name, json!({}), &scope, &ExecuteOptions::default()).await;
        assert_eq!(failure_kind(&done), ToolErrorKind::NotFound);
        let failure = done.result.expect_err("a failure");
        assert_eq!(
            failure.message,
            format!("there is no tool {name:?}; the tools are multiply")
        );
        assert_eq!(
            serde_json::to_value(failure.kind).expect("JSON"),
            "not_found"
        );
    }
}

// proves: JIDO-20, JIDO-67
#[test]
fn toolbox_is_built_from_tool_or_list() {
    let one = Toolbox::from(multiply());
    assert_eq!(one.names().collect::<Vec<_>>(), ["multiply"]);
    let add = FunctionTool::new("add", "", async |_: Value, _| {
        Ok::<Value, ToolError>(Value::Null)
    });
    let two = toolbox(vec![multiply(), add]);
    assert_eq!(two.names().collect::<Vec<_>>(), ["multiply", "add"]);
    for (tools, name) in [(&one, "multiply"), (&two, "multiply"), (&two, "add")] {
        assert_eq!(tools.get(name).expect("a tool").spec().name, name);
    }
}

/// Returns a toolbox whose only tool reports where the toolbox comes from.
fn toolbox_from(place: &'static str) -> Toolbox {
    FunctionTool::new("where", "", move |_: Value, _| async move {
        Ok::<Value, ToolError>(json!(place))
    })
    .into()
}

// proves: JIDO-25, JIDO-26, JIDO-27, UP-24
#[tokio::test]
async fn toolbox_selection_follows_precedence() {
    let mut scope = empty_scope();
    let mut options = ExecuteOptions::default();
    let nowhere = execute("where", json!({}), &scope, &options).await;
    assert_eq!(failure_kind(&nowhere), ToolErrorKind::NotFound);
    scope.agent_tools = Some(toolbox_from("agent"));
    let found = execute("where", json!({}), &scope, &options).await;
    assert_eq!(found.value, Some(json!("agent")));
    scope.tool_calling_tools = Some(toolbox_from("tool calling"));
    let found = execute("where", json!({}), &scope, &options).await;
    assert_eq!(found.value, Some(json!("tool calling")));
    scope.tools = Some(toolbox_from("scope"));
    let found = execute("where", json!({}), &scope, &options).await;
    assert_eq!(found.value, Some(json!("scope")));
    options.tools = Some(toolbox_from("options"));
    let found = execute("where", json!({}), &scope, &options).await;
    assert_eq!(found.value, Some(json!("options")));
}
