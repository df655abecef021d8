//! Bounds the run time of a call and catches its panics.

use crate::{
    grace,
    tool::{Tool, ToolCx},
};
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};
use tokio::time::timeout;
use turnery_engine::{ToolError, ToolErrorKind};

/// Runs `work` until it finishes, times out, is cancelled or panics.
pub(crate) async fn run_bounded<T>(
    name: &str,
    cx: &ToolCx,
    limit: Duration,
    work: impl Future<Output = T>,
) -> Result<T, ToolError> {
    let work = AssertUnwindSafe(work).catch_unwind();
    tokio::pin!(work);
    let done = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => timeout(grace::CALL, work).await.map_err(|_| {
            ToolError::new(ToolErrorKind::Cancelled, format!("{name} was cancelled"))
        }),
        done = timeout(limit, &mut work) => done.map_err(|_| ToolError {
            details: Some(json!({ "timeout_ms": milliseconds(limit) })),
            ..ToolError::new(
                ToolErrorKind::Timeout,
                format!("{name} ran longer than {limit:?} and was stopped"),
            )
        }),
    }?;
    done.map_err(|panic| panic_failure(name, &*panic))
}

/// Returns the tool's time limit for a call (JIDO-70).
pub(crate) fn tool_timeout(
    name: &str,
    tool: &dyn Tool,
    args: &Value,
) -> Result<Duration, ToolError> {
    catch_unwind(AssertUnwindSafe(|| tool.timeout(args)))
        .map_err(|panic| panic_failure(name, &*panic))
}

fn panic_failure(name: &str, panic: &(dyn Any + Send)) -> ToolError {
    let words = panic_message(panic);
    ToolError::new(
        ToolErrorKind::Exception,
        format!("{name} panicked: {words}"),
    )
}

/// Returns the message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it did not say why")
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
