//! Tests of tools outside a session: by name, by reference, and as requested in a response.

mod direct;
mod effects;
mod function_tool;
mod logging;
mod run_tools;
mod sanitise;
mod telemetry;
mod timeouts;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_engine::{
    Content, ModelStop, Response, ToolCall, ToolEnvelope, ToolError, ToolErrorKind,
};
use turnery_tools::{ExecuteScope, FunctionTool, Tool, Toolbox, Workspace};

#[derive(Deserialize, JsonSchema)]
struct Factors {
    a: i64,
    b: i64,
}

/// Multiplies two numbers.
fn multiply() -> FunctionTool {
    FunctionTool::new("multiply", "Multiplies.", async |Factors { a, b }, _| {
        Ok::<Value, ToolError>(json!({"product": a * b}))
    })
}

/// Returns a scope for tools that access no files: its folder is already deleted.
fn empty_scope() -> ExecuteScope {
    let folder = tempfile::tempdir().expect("a folder");
    let workspace = Workspace::local(folder.path().to_owned()).expect("a folder");
    ExecuteScope::new(Arc::new(workspace))
}

fn toolbox(tools: Vec<FunctionTool>) -> Toolbox {
    let tools = tools
        .into_iter()
        .map(|tool| Arc::new(tool) as Arc<dyn Tool>);
    Toolbox::new(tools.collect())
}

/// Returns a response that requests these calls: id, name, arguments.
fn response_with_calls(calls: &[(&str, &str, Value)]) -> Response {
    let calls = calls
        .iter()
        .map(|(id, name, args)| Content::ToolCall(ToolCall::new(*id, *name, args.clone())));
    Response {
        content: calls.collect(),
        stop: ModelStop::ToolUse,
        raw_stop: None,
        usage: None,
        model: "m-1".to_owned(),
        provider: "acme".to_owned(),
        tool_results: Vec::new(),
        request: None,
    }
}

fn failure_kind(envelope: &ToolEnvelope) -> ToolErrorKind {
    let failure = envelope.result.as_ref().expect_err("a failure");
    failure.kind
}
