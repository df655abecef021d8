//! Output of a block of code.

mod output_buffer;

pub(crate) use output_buffer::OutputBuffer;

use crate::limits::CodeLimitExceeded;
use serde_json::Value;

/// Output of a block of code.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeOutput {
    /// Printed text, cut in the middle to [`CodeLimits::output_bytes`](crate::CodeLimits::output_bytes) with a
    /// line that says how much is missing.
    pub text: String,
    /// Value of the last expression as JSON, or its `repr` as a string if it has no JSON form; `None` if there
    /// is no last expression or its value is `None`. Integers that fit neither `i64` nor `u64` are strings of
    /// decimal digits.
    pub value: Option<Value>,
    /// How the block ended.
    pub end: CodeEnd,
    /// True if the variables of earlier blocks are gone: the worker that held them was stopped, during this
    /// block or before it, and they were too large for a snapshot (more than 32 MiB and
    /// [`CodeLimits::snapshot_bytes`](crate::CodeLimits::snapshot_bytes)). Then they are *not* as before the
    /// block, contrary to the texts of `end`. Reported once.
    pub has_lost_variables: bool,
}

/// End of a block of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeEnd {
    /// All code ran.
    Completed,
    /// [`CallReply::End`](crate::CallReply::End) ended the block. Assignments made until then remain.
    Ended,
    /// Syntax error, or traceback of an uncaught exception, with lines. Assignments made until then remain.
    Failed(String),
    /// The block exceeded a limit and was stopped. The variables are as before the block.
    Stopped(CodeLimitExceeded),
    /// The worker could not be started, was killed or crashed, for this reason. The variables are as before the
    /// block.
    WorkerFailed(String),
}
