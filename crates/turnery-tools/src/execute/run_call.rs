//! Runs one call; every call, in a session or outside, goes through here (UP-26).

use super::bounds::{run_bounded, tool_timeout};
use crate::{
    telemetry::CallSpan,
    tool::{ToolCx, into_envelope},
    toolbox::Toolbox,
};
use std::time::Duration;
use turnery_engine::{ToolCall, ToolEnvelope, ToolError};

/// Runs a call within `limit` or the tool's own time limit (JIDO-69, JIDO-70). The outcome, including an
/// unknown tool or invalid arguments, is reported to telemetry, and its effects have passed the policies.
pub(crate) async fn run_call(
    toolbox: &Toolbox,
    call: &ToolCall,
    cx: &ToolCx,
    limit: Option<Duration>,
) -> ToolEnvelope {
    let watch = CallSpan::start(toolbox.telemetry(), call, &cx.origin);
    let mut envelope = into_envelope(resolve_and_run(toolbox, call, cx, limit).await);
    envelope
        .effects
        .retain(|effect| toolbox.effect_policies().allows(effect));
    watch.finish(&envelope);
    envelope
}

async fn resolve_and_run(
    toolbox: &Toolbox,
    call: &ToolCall,
    cx: &ToolCx,
    limit: Option<Duration>,
) -> Result<ToolEnvelope, ToolError> {
    let (tool, args) = toolbox.resolve_call(call)?;
    let limit = match limit {
        Some(limit) => limit,
        None => tool_timeout(&call.name, tool, &args)?,
    };
    // `run` is called inside the future, so that a panic in it is caught as well.
    run_bounded(&call.name, cx, limit, async { tool.run(&args, cx).await }).await
}

/// Reports a call that failed before it could run (UP-23).
pub(crate) fn report_unstarted(
    toolbox: &Toolbox,
    call: &ToolCall,
    cx: &ToolCx,
    failure: &ToolError,
) {
    let watch = CallSpan::start(toolbox.telemetry(), call, &cx.origin);
    watch.finish(&failure.clone().into());
}
