//! Bounds what the calls of one block pass and return: all of it stays in the session's record.

use crate::session::json_bytes;
use serde_json::Value;
use turnery_engine::ToolEnvelope;

/// Maximum size of the arguments and results of a block's calls, images included. Unit: bytes.
const MAX_BYTES: usize = 32 << 20;

/// Bytes that the calls of a block may still pass and return.
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
