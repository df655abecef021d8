//! Runs tools outside a session's loop.
//!
//! A tool can be run by its name ([`execute`]), by reference ([`execute_tool`]), or as part of a model
//! response ([`run_tools`]). None of these asks for permission; callers must only run calls that they trust.
//! They share one code path with the session's loop: arguments are normalised to the schema, run time is
//! bounded, a panic becomes a failure, effects pass the policies, and [`crate::telemetry`] reports the call.

pub(crate) mod bounds;
pub(crate) mod effects;
mod function_tool;
pub(crate) mod run_call;
mod scope;

pub use effects::{EffectKind, EffectMode, EffectPolicies, EffectPolicy, EmitLimits};
pub use function_tool::FunctionTool;
pub use scope::{ExecuteOptions, ExecuteScope};

use crate::{tool::Tool, toolbox::Toolbox};
use serde_json::Value;
use std::sync::Arc;
use turnery_engine::{CallId, Response, ToolCall, ToolEnvelope, ToolErrorKind, ToolResult};

/// Id of a call that was not made by a model.
const DIRECT_CALL_ID: &str = "direct";

/// Runs the tool called `name` (JIDO-36). Arguments may be an object or its JSON text. The tools are those of
/// the options, else those of the scope (UP-24).
pub async fn execute(
    name: &str,
    args: Value,
    scope: &ExecuteScope,
    options: &ExecuteOptions,
) -> ToolEnvelope {
    let call = ToolCall::new(DIRECT_CALL_ID, name, args);
    run_in_scope(&scope.select_toolbox(options), &call, scope, options).await
}

/// Runs this tool without looking it up (JIDO-38).
pub async fn execute_tool(
    tool: Arc<dyn Tool>,
    args: Value,
    scope: &ExecuteScope,
    options: &ExecuteOptions,
) -> ToolEnvelope {
    let toolbox = scope.select_toolbox(options).with_tools(vec![tool]);
    let name: String = toolbox.names().collect();
    let call = ToolCall::new(DIRECT_CALL_ID, name, args);
    run_in_scope(&toolbox, &call, scope, options).await
}

/// Runs every call of a response, one after the other (JIDO-18, JIDO-47). Returns the response with the
/// results added; a response without calls is returned unchanged (JIDO-19, JIDO-75). After a cancel no
/// further call starts.
pub async fn run_tools(
    response: &Response,
    scope: &ExecuteScope,
    options: &ExecuteOptions,
) -> Response {
    let toolbox = scope.select_toolbox(options);
    let mut results = Vec::new();
    for call in response.calls() {
        let envelope = match scope.cancel.is_cancelled() {
            true => cancelled_before_start(&call.call_id),
            false => run_in_scope(&toolbox, call, scope, options).await,
        };
        let (id, name) = (call.call_id.clone(), call.name.clone());
        results.push(ToolResult::new(id, name, envelope));
    }
    match results.is_empty() {
        true => response.clone(),
        false => response.clone().with_tool_results(results),
    }
}

async fn run_in_scope(
    toolbox: &Toolbox,
    call: &ToolCall,
    scope: &ExecuteScope,
    options: &ExecuteOptions,
) -> ToolEnvelope {
    let cx = scope.tool_cx(call.call_id.clone());
    toolbox.run_with_timeout(call, &cx, options.timeout()).await
}

fn cancelled_before_start(call_id: &CallId) -> ToolEnvelope {
    let message = format!("the call {call_id} was cancelled before it began");
    ToolEnvelope::failed(ToolErrorKind::Cancelled, message)
}
