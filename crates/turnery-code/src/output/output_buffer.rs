//! Keeps the beginning and the end of a text; the middle is counted and dropped.

/// Bounded text.
#[derive(Debug)]
pub(crate) struct OutputBuffer {
    limit: usize,
    head: String,
    /// Grows to twice the kept size, so that dropping the front is cheap.
    tail: String,
    omitted_bytes: u64,
}

impl OutputBuffer {
    /// Creates a buffer that keeps up to `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            head: String::new(),
            tail: String::new(),
            omitted_bytes: 0,
        }
    }

    /// Returns `text` cut to `limit` bytes.
    pub(crate) fn cut(text: &str, limit: usize) -> String {
        let mut buffer = Self::new(limit);
        buffer.push(text);
        buffer.into_text()
    }

    /// Adds text.
    pub(crate) fn push(&mut self, text: &str) {
        // Once text went to the tail, nothing more may go to the head.
        let room = match self.tail.is_empty() && self.omitted_bytes == 0 {
            true => (self.limit / 2).saturating_sub(self.head.len()),
            false => 0,
        };
        let (to_head, rest) = text.split_at(text.floor_char_boundary(room));
        self.head.push_str(to_head);
        self.tail.push_str(rest);
        if self.tail.len() > self.tail_limit().saturating_mul(2) {
            self.shorten_tail();
        }
    }

    /// Returns the kept text, with a line where bytes were omitted.
    pub(crate) fn into_text(mut self) -> String {
        if self.tail.len() > self.tail_limit() {
            self.shorten_tail();
        }
        let mut text = self.head;
        if self.omitted_bytes > 0 {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("[{} bytes left out here]\n", self.omitted_bytes));
        }
        text.push_str(&self.tail);
        text
    }

    fn tail_limit(&self) -> usize {
        self.limit - self.limit / 2
    }

    fn shorten_tail(&mut self) {
        let excess = self.tail.len().saturating_sub(self.tail_limit());
        let end = self.tail.ceil_char_boundary(excess);
        self.tail.drain(..end);
        self.omitted_bytes += end as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::OutputBuffer;

    #[test]
    fn text_within_limit_is_kept_whole() {
        assert_eq!(OutputBuffer::cut("0123456789", 10), "0123456789");
        assert_eq!(OutputBuffer::cut("", 0), "");
    }

    #[test]
    fn middle_of_long_text_is_left_out() {
        let expected = "01\n[6 bytes left out here]\n89";
        assert_eq!(OutputBuffer::cut("0123456789", 4), expected);
        let mut buffer = OutputBuffer::new(4);
        for digit in 0..10 {
            buffer.push(&digit.to_string());
        }
        assert_eq!(buffer.into_text(), expected);
        assert_eq!(OutputBuffer::cut("abc", 0), "[3 bytes left out here]\n");
    }

    #[test]
    fn characters_are_not_split() {
        // Two bytes each: the head has room for one, the tail for one and a half.
        let expected = "\u{e9}\n[6 bytes left out here]\n\u{e9}";
        assert_eq!(OutputBuffer::cut(&"\u{e9}".repeat(5), 5), expected);
    }
}
