//! Previews the output of a running command.
//!
//! The `content` of an update replaces the previous one, so sending the whole output again for each line would cost the square of
//! its length. Only the end is sent, and only once the output has grown by a quarter (at most 2 KiB) or some time has passed:
//! the cost stays proportional to the output.

use crate::limits::{PREVIEW_INTERVAL_MS, PREVIEW_LIMIT};
use turnery_engine::Timestamp;

/// Tail of a command's output.
#[derive(Debug, Default)]
pub(crate) struct OutputPreview {
    tail: String,
    /// Bytes printed so far, and their number when the preview was last sent.
    printed_bytes: usize,
    sent_bytes: usize,
    sent_at: Option<Timestamp>,
}

impl OutputPreview {
    /// Appends output. Returns true if the preview is worth sending again.
    pub(crate) fn push(&mut self, text: &str, at: Timestamp) -> bool {
        self.printed_bytes += text.len();
        self.tail.push_str(text);
        if self.tail.len() > 2 * PREVIEW_LIMIT {
            let cut = self
                .tail
                .ceil_char_boundary(self.tail.len() - PREVIEW_LIMIT);
            self.tail.drain(..cut);
        }
        let fresh = self.printed_bytes - self.sent_bytes;
        let grown = fresh >= (self.sent_bytes / 4).clamp(1, PREVIEW_LIMIT / 4);
        let waited = self
            .sent_at
            .is_some_and(|last| (at - last).num_milliseconds() >= PREVIEW_INTERVAL_MS);
        let send = grown || waited;
        if send {
            self.sent_bytes = self.printed_bytes;
            self.sent_at = Some(at);
        }
        send
    }

    /// Returns the text of the preview.
    pub(crate) fn text(&self) -> String {
        let start = self.tail.len().saturating_sub(PREVIEW_LIMIT);
        let start = self.tail.ceil_char_boundary(start);
        let shown = &self.tail[start..];
        match self.printed_bytes - shown.len() {
            0 => shown.to_owned(),
            hidden => format!("({hidden} bytes before this)\n{shown}"),
        }
    }
}
