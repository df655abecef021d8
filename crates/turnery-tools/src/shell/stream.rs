//! Stream: what is shown of the output while the command runs. Pieces are joined while nobody
//! takes them, and it ends after a while, so that a flood is not sent to a client that shows a page.

use super::plain::Plain;

/// Text that waits to be taken, at most about this much.
const ROOM: usize = 32 * 1024;
/// Shown of one command, in bytes.
const MOST: usize = 1024 * 1024;

/// Text on its way to whoever watches.
#[derive(Debug, Default)]
pub(super) struct Stream {
    plain: Plain,
    waiting: String,
    shown: usize,
    closed: bool,
}

impl Stream {
    /// The next bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        if self.closed {
            return;
        }
        let before = self.waiting.len();
        self.plain.add(bytes, &mut self.waiting);
        self.shown += self.waiting.len() - before;
        if self.shown > MOST {
            self.closed = true;
            self.waiting
                .push_str("\n[more output is not shown while the command runs]\n");
        }
    }

    /// There are no more bytes.
    pub(super) fn end(&mut self) {
        if !self.closed {
            self.plain.end(&mut self.waiting);
            self.closed = true;
        }
    }

    /// Nobody watches any more.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.waiting = String::new();
    }

    /// Whether more can be added before some is taken.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < ROOM
    }

    /// Whether there is something to take.
    pub(super) fn has_text(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// All that waits.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_joined_until_taken() {
        let mut stream = Stream::default();
        stream.add(b"a\xc3");
        stream.add(b"\xa9\x1b[1m");
        stream.add(b"b");
        assert!(stream.has_text() && stream.has_room());
        assert_eq!(stream.take(), "a\u{e9}b");
        assert!(!stream.has_text());
    }

    #[test]
    fn a_flood_ends_with_a_note() {
        let mut stream = Stream::default();
        let mut shown = String::new();
        for _ in 0..100 {
            stream.add(&[b'x'; 32 * 1024]);
            assert!(stream.waiting.len() <= 65 * 1024);
            shown.push_str(&stream.take());
        }
        assert!(shown.len() < MOST + 33 * 1024);
        assert!(shown.ends_with("x\n[more output is not shown while the command runs]\n"));
    }
}
