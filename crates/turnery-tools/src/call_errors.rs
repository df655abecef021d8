//! Errors of calls.

use turnery_engine::{ToolError, ToolErrorKind};

/// Returns an error without details; `message` is for the model.
pub(crate) fn failure(kind: ToolErrorKind, message: impl Into<String>) -> ToolError {
    ToolError {
        kind,
        message: message.into(),
        details: None,
    }
}

/// Returns the error for invalid arguments.
pub(crate) fn invalid(message: impl Into<String>) -> ToolError {
    failure(ToolErrorKind::Validation, message)
}

/// Returns the error of work that was cancelled.
pub(crate) fn cancelled() -> ToolError {
    failure(ToolErrorKind::Cancelled, "cancelled")
}
