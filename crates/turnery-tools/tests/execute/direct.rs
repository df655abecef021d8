//! One tool, run by its name or by reference.

use super::{kind, multiply, scope, toolbox};
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_engine::{Content, FailureKind, ToolFailure};
use turnery_tools::{Action, Options, Toolbox, execute, execute_tool};

// proves: JIDO-36, JIDO-37, JIDO-41
#[tokio::test]
async fn a_tool_runs_by_its_name() {
    let options = Options {
        tools: Some(toolbox(vec![multiply()])),
        ..Options::default()
    };
    let done = execute("multiply", json!({"a": 6, "b": 7}), &scope(), &options).await;
    assert_eq!(done.result, Ok(vec![Content::text("{\"product\":42}")]));
    assert_eq!(done.value, Some(json!({"product": 42})));
    assert!(done.effects.is_empty());
}

// proves: JIDO-38
#[tokio::test]
async fn a_tool_runs_by_reference_whatever_tools_there_are() {
    let other = Action::new("multiply", "", async |_: Value, _| {
        Ok::<Value, ToolFailure>(json!("the wrong one"))
    });
    let scope = scope().with_tools(toolbox(vec![other]));
    let done = execute_tool(
        Arc::new(multiply()),
        json!({"a": 6, "b": 7}),
        &scope,
        &Options::default(),
    )
    .await;
    assert_eq!(done.value, Some(json!({"product": 42})));
    assert!(done.effects.is_empty());
}

// proves: JIDO-39, JIDO-40
#[tokio::test]
async fn arguments_are_brought_into_the_schemas_shape_both_ways() {
    let scope = scope().with_tools(multiply().into());
    for args in [
        json!({"a": "6", "b": "7"}),
        json!("{\"a\": 6, \"b\": \"7\"}"),
        json!({"a": 6.0, "b": 7}),
    ] {
        let options = Options::default();
        let by_name = execute("multiply", args.clone(), &scope, &options).await;
        assert_eq!(by_name.value, Some(json!({"product": 42})), "{args}");
        let tool = Arc::new(multiply());
        let by_reference = execute_tool(tool, args.clone(), &scope, &options).await;
        assert_eq!(by_reference.value, Some(json!({"product": 42})), "{args}");
    }
}

// proves: JIDO-42, JIDO-76
#[tokio::test]
async fn bad_arguments_are_a_failure_of_validation() {
    let scope = scope().with_tools(multiply().into());
    for args in [json!({"a": 6}), json!("{oops"), json!([6, 7])] {
        let done = execute("multiply", args, &scope, &Options::default()).await;
        assert_eq!(kind(&done), FailureKind::Validation);
        assert!(done.effects.is_empty());
    }
    let nameless = execute("", json!({}), &scope, &Options::default()).await;
    assert_eq!(kind(&nameless), FailureKind::Validation);
}

// proves: JIDO-65, JIDO-66
#[tokio::test]
async fn an_unknown_name_is_not_found_and_case_matters() {
    let scope = scope().with_tools(multiply().into());
    for name in ["divide", "Multiply"] {
        let done = execute(name, json!({}), &scope, &Options::default()).await;
        assert_eq!(kind(&done), FailureKind::NotFound);
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
fn a_box_is_made_of_one_tool_or_of_a_list_and_knows_its_names() {
    let one = Toolbox::from(multiply());
    assert_eq!(one.names().collect::<Vec<_>>(), ["multiply"]);
    let add = Action::new("add", "", async |_: Value, _| {
        Ok::<Value, ToolFailure>(Value::Null)
    });
    let two = toolbox(vec![multiply(), add]);
    assert_eq!(two.names().collect::<Vec<_>>(), ["multiply", "add"]);
    assert!(two.get("add").is_some());
}

/// Boxes whose only tool says where it comes from.
fn from(place: &'static str) -> Toolbox {
    Action::new("where", "", move |_: Value, _| async move {
        Ok::<Value, ToolFailure>(json!(place))
    })
    .into()
}

// proves: JIDO-25, JIDO-26, JIDO-27, UP-24
#[tokio::test]
async fn tools_come_from_options_then_scope_then_tool_calling_then_agent() {
    let mut scope = scope();
    let mut options = Options::default();
    let nowhere = execute("where", json!({}), &scope, &options).await;
    assert_eq!(kind(&nowhere), FailureKind::NotFound);
    scope.agent = Some(from("agent"));
    let found = execute("where", json!({}), &scope, &options).await;
    assert_eq!(found.value, Some(json!("agent")));
    scope.tool_calling = Some(from("tool calling"));
    let found = execute("where", json!({}), &scope, &options).await;
    assert_eq!(found.value, Some(json!("tool calling")));
    scope.tools = Some(from("scope"));
    let found = execute("where", json!({}), &scope, &options).await;
    assert_eq!(found.value, Some(json!("scope")));
    options.tools = Some(from("options"));
    let found = execute("where", json!({}), &scope, &options).await;
    assert_eq!(found.value, Some(json!("options")));
}
