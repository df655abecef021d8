//! Preview: what a running command has printed, as far as it is shown before its end.
//!
//! Content replaces content on the wire, so sending the whole output again for each line would cost
//! the square of its length. Only the end is shown, and sent again only once it has grown by a
//! quarter or a moment has passed: the cost stays in proportion to the output.

use crate::bounds::{PREVIEW, PREVIEW_PAUSE_MS};
use turnery_engine::Timestamp;

/// The end of what was printed.
#[derive(Debug, Default)]
pub(crate) struct Preview {
    tail: String,
    /// Bytes printed in all, and how many of them had been when the preview was last sent.
    printed: usize,
    sent: usize,
    sent_at: Option<Timestamp>,
}

impl Preview {
    /// More was printed. True when the preview is worth sending again.
    pub(crate) fn push(&mut self, text: &str, at: Timestamp) -> bool {
        self.printed += text.len();
        self.tail.push_str(text);
        if self.tail.len() > 2 * PREVIEW {
            let cut = self.tail.ceil_char_boundary(self.tail.len() - PREVIEW);
            self.tail.drain(..cut);
        }
        let fresh = self.printed - self.sent;
        let grown = fresh >= (self.sent / 4).clamp(1, PREVIEW / 4);
        let waited = self
            .sent_at
            .is_some_and(|last| (at - last).num_milliseconds() >= PREVIEW_PAUSE_MS);
        let send = grown || waited;
        if send {
            self.sent = self.printed;
            self.sent_at = Some(at);
        }
        send
    }

    /// What to show.
    pub(crate) fn text(&self) -> String {
        let start = self.tail.len().saturating_sub(PREVIEW);
        let start = self.tail.ceil_char_boundary(start);
        let shown = &self.tail[start..];
        match self.printed - shown.len() {
            0 => shown.to_owned(),
            hidden => format!("({hidden} bytes before this)\n{shown}"),
        }
    }
}
