//! Bounds: whatever a tool does, its call ends.

use crate::{Tool, ToolCx, grace};
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};
use tokio::time::timeout;
use turnery_engine::{FailureKind, ToolFailure};

/// The work of a call ends: by itself, by its timeout, by a cancel, or by its panic.
pub(crate) async fn bounded<T>(
    name: &str,
    cx: &ToolCx,
    limit: Duration,
    work: impl Future<Output = T>,
) -> Result<T, ToolFailure> {
    let work = AssertUnwindSafe(work).catch_unwind();
    tokio::pin!(work);
    let done = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => timeout(grace::CALL, work).await.map_err(|_| {
            failure(FailureKind::Cancelled, format!("{name} was cancelled"))
        }),
        done = timeout(limit, &mut work) => done.map_err(|_| ToolFailure {
            details: Some(json!({ "timeout_ms": milliseconds(limit) })),
            ..failure(
                FailureKind::Timeout,
                format!("{name} ran longer than {limit:?} and was stopped"),
            )
        }),
    }?;
    done.map_err(|panic| broke(name, &*panic))
}

/// How long a tool says that a call may take (JIDO-70).
pub(crate) fn limit_of(tool: &dyn Tool, args: &Value) -> Result<Duration, ToolFailure> {
    catch_unwind(AssertUnwindSafe(|| tool.timeout(args)))
        .map_err(|panic| broke(&tool.spec().name, &*panic))
}

fn broke(name: &str, panic: &(dyn Any + Send)) -> ToolFailure {
    let words = words_of(panic);
    failure(FailureKind::Exception, format!("{name} broke: {words}"))
}

pub(crate) fn failure(kind: FailureKind, message: String) -> ToolFailure {
    ToolFailure {
        kind,
        message,
        details: None,
    }
}

/// What a panic said.
fn words_of(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it did not say why")
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
