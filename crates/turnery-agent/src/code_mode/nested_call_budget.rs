//! Bounds what the calls of one block pass and return: all of it stays in the session's record.

use serde::Serialize;
use serde_json::Value;
use std::io;
use turnery_engine::ToolEnvelope;

/// Maximum size of the arguments and results of a block's calls, images included. Unit: bytes.
const MAX_BYTES: usize = 32 << 20;

/// What is left for the calls of a block.
#[derive(Debug)]
pub(super) struct NestedCallBudget {
    bytes_left: usize,
}

impl Default for NestedCallBudget {
    fn default() -> Self {
        Self {
            bytes_left: MAX_BYTES,
        }
    }
}

impl NestedCallBudget {
    /// Counts the arguments of a call. The error tells the model why the call cannot be made.
    pub(super) fn take_arguments(&mut self, args: &Value) -> Result<(), String> {
        match self.bytes_left.checked_sub(json_bytes(args)) {
            None | Some(0) => Err(format!(
                "the calls of this block have used up the {} MiB that they may pass and return together: go on in \
                 another block",
                MAX_BYTES >> 20
            )),
            Some(left) => {
                self.bytes_left = left;
                Ok(())
            }
        }
    }

    /// Counts the result of a call that was made.
    pub(super) fn take_result(&mut self, result: &ToolEnvelope) {
        let bytes = match &result.result {
            Ok(content) => json_bytes(content),
            Err(error) => error.message.len(),
        };
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
    }
}

/// Returns the length of a value as JSON, without writing it.
fn json_bytes(value: &impl Serialize) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Counting never fails.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use turnery_engine::{Content, ToolErrorKind};

    #[test]
    fn arguments_and_results_share_the_budget() {
        let mut budget = NestedCallBudget::default();
        let half = "x".repeat(MAX_BYTES / 2);
        assert_eq!(budget.take_arguments(&json!({ "text": half })), Ok(()));
        assert_eq!(budget.take_arguments(&json!({})), Ok(()));
        let refused = budget.take_arguments(&json!({ "text": half }));
        assert!(refused.is_err_and(|error| error.contains("32 MiB")));
        let third = Content::text("x".repeat(MAX_BYTES / 3));
        budget.take_result(&ToolEnvelope::ok(vec![third]));
        assert_eq!(budget.take_arguments(&json!({})), Ok(()));
        budget.take_result(&ToolEnvelope::failed(ToolErrorKind::Exception, half));
        assert!(budget.take_arguments(&json!({})).is_err());
    }
}
