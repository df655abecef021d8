//! Output shown while a command runs. Chunks are joined until they are taken, and the total is limited, so
//! that a flood is not sent to a client that shows one page.

use super::strip_ansi::AnsiStripper;

/// Approximate limit on text waiting to be taken. Unit: bytes.
const MAX_PENDING_BYTES: usize = 32 * 1024;
/// Maximum output shown of one command. Unit: bytes.
const MAX_SHOWN_BYTES: usize = 1024 * 1024;

/// Text on its way to the client.
#[derive(Debug, Default)]
pub(super) struct LiveOutput {
    stripper: AnsiStripper,
    pending: String,
    shown_bytes: usize,
    is_closed: bool,
}

impl LiveOutput {
    /// Adds the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.is_closed {
            return;
        }
        let before = self.pending.len();
        self.stripper.push_bytes(bytes, &mut self.pending);
        self.shown_bytes += self.pending.len() - before;
        if self.shown_bytes > MAX_SHOWN_BYTES {
            self.is_closed = true;
            self.pending
                .push_str("\n[more output is not shown while the command runs]\n");
        }
    }

    /// Marks the end of the output.
    pub(super) fn finish(&mut self) {
        if !self.is_closed {
            self.stripper.finish(&mut self.pending);
            self.is_closed = true;
        }
    }

    /// Discards further output, because progress is no longer displayed.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.pending = String::new();
    }

    /// Returns true if more can be added before text is taken.
    pub(super) fn has_room(&self) -> bool {
        self.pending.len() < MAX_PENDING_BYTES
    }

    /// Returns true if there is text to take.
    pub(super) fn has_text(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Takes all waiting text.
    pub(super) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined_until_taken() {
        let mut stream = LiveOutput::default();
        stream.push(b"a\xc3");
        stream.push(b"\xa9\x1b[1m");
        stream.push(b"b");
        assert!(stream.has_text() && stream.has_room());
        assert_eq!(stream.take_text(), "a\u{e9}b");
        assert!(!stream.has_text());
    }

    #[test]
    fn excess_output_ends_with_note() {
        let mut stream = LiveOutput::default();
        let mut shown_bytes = String::new();
        for _ in 0..100 {
            stream.push(&[b'x'; 32 * 1024]);
            assert!(stream.pending.len() <= 65 * 1024);
            shown_bytes.push_str(&stream.take_text());
        }
        assert!(shown_bytes.len() < MAX_SHOWN_BYTES + 33 * 1024);
        assert!(shown_bytes.ends_with("x\n[more output is not shown while the command runs]\n"));
    }
}
