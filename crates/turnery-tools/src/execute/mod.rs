//! Execute: tools at work outside a session's loop, and the one seam that every call goes through.
//!
//! A tool can be run by its name ([`execute`]), by reference ([`execute_tool`]), or as part of a
//! model's answer ([`run_tools`]). None of them asks for permission: whoever calls them wants it.
//! They share one seam with the session's loop: arguments are made to fit the schema, the work is
//! bounded in time, a panic is a failure, effects pass the policies, and [`crate::observe`] is told.

mod action;
mod bounds;
mod effects;
mod scope;
mod seam;

pub use action::Action;
pub use effects::{EffectKind, EffectMode, EffectPolicies, EffectPolicy, EmitLimits};
pub use scope::{Options, Origin, Scope};

pub(crate) use bounds::{bounded, failure, limit_of};
pub(crate) use seam::{never_ran, run};

use crate::{Tool, Toolbox};
use serde_json::Value;
use std::sync::Arc;
use turnery_engine::{CallId, FailureKind, Response, ToolCall, ToolEnvelope, ToolResult};

/// The id of a call that no model made.
const DIRECT: &str = "direct";

/// Run the tool of this name (JIDO-36). Arguments may be an object or the text of one. The tools are
/// those of the options, or of the scope (UP-24).
pub async fn execute(name: &str, args: Value, scope: &Scope, options: &Options) -> ToolEnvelope {
    let call = ToolCall {
        call_id: DIRECT.into(),
        name: name.to_owned(),
        args: Arc::new(args),
    };
    run_call(&scope.toolbox(options), &call, scope, options).await
}

/// Run this tool, without looking it up (JIDO-38).
pub async fn execute_tool(
    tool: Arc<dyn Tool>,
    args: Value,
    scope: &Scope,
    options: &Options,
) -> ToolEnvelope {
    let name = tool.spec().name.clone();
    let toolbox = scope.toolbox(options).with(vec![tool]);
    let call = ToolCall {
        call_id: DIRECT.into(),
        name,
        args: Arc::new(args),
    };
    run_call(&toolbox, &call, scope, options).await
}

/// Run every call of an answer, one after the other in its order (JIDO-18, JIDO-47). The answer
/// comes back with the results; one without calls comes back as it is (JIDO-19, JIDO-75). After a
/// cancel no further call starts.
pub async fn run_tools(response: &Response, scope: &Scope, options: &Options) -> Response {
    let toolbox = scope.toolbox(options);
    let mut results = Vec::new();
    for call in response.calls() {
        let envelope = match scope.cancel.is_cancelled() {
            true => unrun(&call.call_id),
            false => run_call(&toolbox, call, scope, options).await,
        };
        let (id, name) = (call.call_id.clone(), call.name.clone());
        results.push(ToolResult::new(id, name, envelope));
    }
    match results.is_empty() {
        true => response.clone(),
        false => response.clone().with_tool_results(results),
    }
}

async fn run_call(
    toolbox: &Toolbox,
    call: &ToolCall,
    scope: &Scope,
    options: &Options,
) -> ToolEnvelope {
    let cx = scope.cx(call.call_id.clone());
    toolbox.run_within(call, &cx, options.timeout()).await
}

fn unrun(call_id: &CallId) -> ToolEnvelope {
    let message = format!("the call {call_id} was cancelled before it began");
    ToolEnvelope::failed(FailureKind::Cancelled, message)
}
