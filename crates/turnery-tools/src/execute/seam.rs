//! Seam: the one way in which a tool is run, by whomever (UP-26).

use super::{bounded, limit_of};
use crate::{ToolCx, Toolbox, observe::Watch, tool::end};
use std::time::Duration;
use turnery_engine::{ToolCall, ToolEnvelope, ToolFailure};

/// Run a call: bounded by `limit`, or by what its tool says (JIDO-69, JIDO-70). Whatever comes of
/// it, an unknown tool and bad arguments included, is observed, and has passed the effect policies.
pub(crate) async fn run(
    toolbox: &Toolbox,
    call: &ToolCall,
    cx: &ToolCx,
    limit: Option<Duration>,
) -> ToolEnvelope {
    let watch = Watch::start(toolbox.observe(), call, &cx.origin);
    let mut envelope = end(ran(toolbox, call, cx, limit).await);
    envelope
        .effects
        .retain(|effect| toolbox.effects().allow(effect));
    watch.end(&envelope);
    envelope
}

async fn ran(
    toolbox: &Toolbox,
    call: &ToolCall,
    cx: &ToolCx,
    limit: Option<Duration>,
) -> Result<ToolEnvelope, ToolFailure> {
    let (tool, args) = toolbox.look_up(call)?;
    let limit = match limit {
        Some(limit) => limit,
        None => limit_of(tool, &args)?,
    };
    // Not called before it is polled, so that a panic on the way is caught as well.
    bounded(&call.name, cx, limit, async { tool.run(&args, cx).await }).await
}

/// A call that failed before it could run, and never will, is observed like any other (UP-23).
pub(crate) fn never_ran(toolbox: &Toolbox, call: &ToolCall, cx: &ToolCx, failure: &ToolFailure) {
    let watch = Watch::start(toolbox.observe(), call, &cx.origin);
    watch.end(&failure.clone().into());
}
