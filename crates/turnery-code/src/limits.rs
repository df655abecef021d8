//! Limits of a block of code.

use std::time::Duration;
use thiserror::Error;

/// Limits of each block of code. None of them adds up over the blocks of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeLimits {
    /// Time in which the worker computes. Time in which the host works on calls does not count.
    pub computing_time: Duration,
    /// Memory of the interpreter, with all variables. Unit: bytes of address space.
    pub memory_bytes: u64,
    /// Printed text that [`CodeOutput`](crate::CodeOutput) keeps. Unit: bytes.
    pub output_bytes: usize,
    /// Nesting of Python calls, and of values during comparisons and conversions.
    pub recursion_depth: usize,
    /// Calls of host functions.
    pub calls: usize,
    /// Largest snapshot that [`CodeSession::snapshot`](crate::CodeSession::snapshot) returns. Unit: bytes.
    pub snapshot_bytes: usize,
}

impl Default for CodeLimits {
    /// Returns 30 s, 512 MiB, 64 KiB of output, 500 nested calls, 1000 calls of host functions, and snapshots of
    /// 4 MiB.
    fn default() -> Self {
        Self {
            computing_time: Duration::from_secs(30),
            memory_bytes: 512 << 20,
            output_bytes: 64 << 10,
            recursion_depth: 500,
            calls: 1000,
            snapshot_bytes: 4 << 20,
        }
    }
}

/// Limit that a block of code exceeded. The text is for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CodeLimitExceeded {
    /// [`CodeLimits::computing_time`].
    #[error(
        "The code computed for too long and was stopped. The variables are as before this block."
    )]
    ComputingTime,
    /// [`CodeLimits::memory_bytes`].
    #[error(
        "The code needed too much memory and was stopped. The variables are as before this block."
    )]
    Memory,
    /// [`CodeLimits::calls`].
    #[error(
        "The code made too many function calls and was stopped. The variables are as before this block."
    )]
    Calls,
    /// Far more printed text than is kept: 64 MiB.
    #[error(
        "The code printed too much text and was stopped. The variables are as before this block."
    )]
    Output,
}

#[cfg(test)]
mod tests {
    use super::CodeLimitExceeded;

    #[test]
    fn text_says_what_was_exceeded_and_what_remains() {
        for (limit, cause) in [
            (
                CodeLimitExceeded::ComputingTime,
                "The code computed for too long and was stopped.",
            ),
            (
                CodeLimitExceeded::Memory,
                "The code needed too much memory and was stopped.",
            ),
            (
                CodeLimitExceeded::Calls,
                "The code made too many function calls and was stopped.",
            ),
            (
                CodeLimitExceeded::Output,
                "The code printed too much text and was stopped.",
            ),
        ] {
            let expected = format!("{cause} The variables are as before this block.");
            assert_eq!(limit.to_string(), expected);
        }
    }
}
