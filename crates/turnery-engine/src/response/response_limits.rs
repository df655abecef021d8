//! Size limits of a response, and the running size that is checked against them.

use crate::{Content, Response};

/// Size limits of one model response. A larger response is stopped while it streams (UP-1).
///
/// The defaults are far above any real response. The longest output of a hosted model is 128,000 tokens,
/// about 600 KB of text; 16 MiB leaves 128 bytes for each of them. Responses with more than a hundred calls
/// are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseLimits {
    /// Text, reasoning and call arguments together. Unit: bytes.
    pub bytes: u64,
    /// Number of calls.
    pub calls: u64,
}

impl Default for ResponseLimits {
    fn default() -> Self {
        Self {
            bytes: 16 * 1024 * 1024,
            calls: 1_000,
        }
    }
}

/// Limit that a response exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseLimitError {
    /// Exceeds [`ResponseLimits::bytes`].
    #[error("Max answer size reached ({limit} bytes)")]
    Bytes {
        /// Limit.
        limit: u64,
    },
    /// Exceeds [`ResponseLimits::calls`].
    #[error("Max calls of one answer reached ({limit})")]
    Calls {
        /// Limit.
        limit: u64,
    },
}

/// Size of a response so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseSize {
    bytes: u64,
    calls: u64,
}

impl ResponseSize {
    /// Size added for every block, so that the number of small blocks is limited too. Unit: bytes.
    pub const BLOCK_OVERHEAD_BYTES: usize = 128;

    /// Returns the size of a complete response. Call arguments count only if they are still text, because
    /// they are not valid JSON; parsed ones count as fragments, while the response streams.
    #[must_use]
    pub fn of_response(response: &Response) -> Self {
        let mut size = Self::default();
        for item in &response.content {
            size.add_bytes(Self::BLOCK_OVERHEAD_BYTES);
            match item {
                Content::Text { text } | Content::Thinking { text, .. } => {
                    size.add_bytes(text.len())
                }
                Content::ToolCall(call) => {
                    size.add_call();
                    size.add_bytes(call.args.as_str().map_or(0, str::len));
                }
                Content::Image(_)
                | Content::Audio(_)
                | Content::Document(_)
                | Content::Opaque { .. } => {}
            }
        }
        size
    }

    /// Adds content.
    pub fn add_bytes(&mut self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Adds one call.
    pub fn add_call(&mut self) {
        self.calls = self.calls.saturating_add(1);
    }

    /// Returns the bytes so far, including the overhead of blocks.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Checks the size against the limits.
    ///
    /// # Errors
    ///
    /// Returns the first exceeded limit; a response exactly at a limit passes.
    pub fn check(&self, limits: &ResponseLimits) -> Result<(), ResponseLimitError> {
        if self.bytes > limits.bytes {
            return Err(ResponseLimitError::Bytes {
                limit: limits.bytes,
            });
        }
        if self.calls > limits.calls {
            return Err(ResponseLimitError::Calls {
                limit: limits.calls,
            });
        }
        Ok(())
    }
}
