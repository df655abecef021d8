//! Errors of calls.

use turnery_engine::{ToolError, ToolErrorKind};

/// Returns the error of a tool that could not do its work.
pub(crate) fn execution_error(message: impl Into<String>) -> ToolError {
    ToolError::new(ToolErrorKind::ExecutionError, message)
}

/// Returns the error for invalid arguments.
pub(crate) fn validation_error(message: impl Into<String>) -> ToolError {
    ToolError::new(ToolErrorKind::Validation, message)
}

/// Returns the error of work that was cancelled.
pub(crate) fn cancelled() -> ToolError {
    ToolError::new(ToolErrorKind::Cancelled, "cancelled")
}
