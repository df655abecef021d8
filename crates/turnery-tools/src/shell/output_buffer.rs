//! Keeps the beginning and the end of a command's output; the middle is counted and dropped.

use super::strip_ansi::AnsiStripper;

/// Bytes kept from the beginning.
const HEAD_BYTES: usize = 12 * 1024;
/// Bytes kept from the end, where errors and summaries are.
const TAIL_BYTES: usize = 18 * 1024;

/// Bounded output of a command.
#[derive(Debug, Default)]
pub(super) struct OutputBuffer {
    head: Vec<u8>,
    /// Grows to twice the kept size, so that dropping the front is cheap.
    tail: Vec<u8>,
    omitted_bytes: u64,
}

impl OutputBuffer {
    /// Maximum number of bytes kept.
    pub(super) const MAX_BYTES: usize = HEAD_BYTES + TAIL_BYTES;

    /// Adds the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let (to_head, rest) = bytes.split_at(bytes.len().min(HEAD_BYTES - self.head.len()));
        self.head.extend_from_slice(to_head);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * TAIL_BYTES {
            self.drop_from_tail(self.tail.len() - TAIL_BYTES);
        }
    }

    /// Returns the output as text, with a note where bytes were omitted.
    pub(super) fn into_text(mut self) -> String {
        if self.tail.len() > TAIL_BYTES {
            self.drop_from_tail(self.tail.len() - TAIL_BYTES);
        }
        if self.omitted_bytes == 0 {
            self.head.append(&mut self.tail);
            return AnsiStripper::strip(&self.head);
        }
        // Cut at line breaks if possible, so that no line or character is split.
        if let Some(end) = self.head.iter().rposition(|byte| *byte == b'\n') {
            self.omitted_bytes += (self.head.len() - end - 1) as u64;
            self.head.truncate(end + 1);
        }
        let is_begin = |byte: &u8| byte & 0xc0 != 0x80;
        let begin = match self.tail.iter().position(|byte| *byte == b'\n') {
            Some(end) if end + 1 < self.tail.len() => end + 1,
            Some(_) | None => self.tail.iter().position(is_begin).unwrap_or(0),
        };
        self.drop_from_tail(begin);
        let mut text = AnsiStripper::strip(&self.head);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&omission_note(Some(self.omitted_bytes)));
        text.push_str(&AnsiStripper::strip(&self.tail));
        text
    }

    fn drop_from_tail(&mut self, count: usize) {
        self.tail.drain(..count);
        self.omitted_bytes += count as u64;
    }
}

/// Returns the note that replaces omitted output.
pub(super) fn omission_note(bytes: Option<u64>) -> String {
    let what = bytes.map_or("output".to_owned(), |bytes| format!("{bytes} bytes"));
    format!(
        "[{what} left out here. To see it, narrow the command: grep for what matters, or print a part with head, tail or sed -n]\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_within_limit_is_kept_whole() {
        let mut kept = OutputBuffer::default();
        kept.push(b"a\nb");
        kept.push(&[b'x'; OutputBuffer::MAX_BYTES - 3]);
        let text = kept.into_text();
        assert_eq!(
            text,
            format!("a\nb{}", "x".repeat(OutputBuffer::MAX_BYTES - 3))
        );
    }

    #[test]
    fn middle_is_omitted_at_line_boundaries() {
        let mut kept = OutputBuffer::default();
        // 8 bytes per line, 800 000 bytes.
        for number in 0..100_000 {
            kept.push(format!("{number:07}\n").as_bytes());
        }
        let text = kept.into_text();
        // 12 288 bytes are lines 0 to 1535; of the last 18 432 the first line is dropped.
        let note = "[769288 bytes left out here. To see it, narrow the command: grep for what matters, or print a part with head, tail or sed -n]";
        assert!(text.starts_with("0000000\n0000001\n"));
        assert!(
            text.contains(&format!("0001535\n{note}\n0097697\n")),
            "{text}"
        );
        assert!(text.ends_with("0099999\n"));
    }

    #[test]
    fn single_long_line_is_cut_at_char_boundary() {
        let mut kept = OutputBuffer::default();
        kept.push("\u{e9}".repeat(100_000).as_bytes());
        kept.push(b"!");
        let text = kept.into_text();
        assert!(!text.contains('\u{fffd}'));
        assert!(text.starts_with("\u{e9}\u{e9}") && text.ends_with("\u{e9}!"));
        assert!(text.len() <= OutputBuffer::MAX_BYTES + 200);
    }
}
