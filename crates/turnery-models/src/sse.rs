//! Decodes server-sent events from bytes; yields the data of one event at a time, borrowed from the buffer.
//!
//! Only the field `data` is read; in the model APIs it repeats the name of the event. The result does not
//! depend on how the bytes were split. Once more than [`MAX_EVENT_BYTES`] of an incomplete event are buffered,
//! decoding fails.

use std::{ops::Range, str};

/// Longest incomplete event that is buffered. Unit: bytes.
pub(crate) const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// Byte-order mark at the start of a stream.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Error after which a stream cannot be decoded further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SseError {
    /// An incomplete event exceeds [`MAX_EVENT_BYTES`].
    #[error("one event is longer than {} MiB", MAX_EVENT_BYTES / 1024 / 1024)]
    TooLong,
    /// An event is not UTF-8.
    #[error("an event is not UTF-8")]
    NotUtf8,
    /// The stream ends within a line that is not `data`.
    #[error("the last event broke off")]
    CutShort,
}

/// Incremental decoder of a stream of events.
#[derive(Debug, Default)]
pub(crate) struct SseDecoder {
    buffer: Vec<u8>,
    /// Start of the current event; earlier bytes were consumed.
    event_start: usize,
    /// Start of the current line.
    line_start: usize,
    /// Position up to which line ends were searched.
    scanned: usize,
    /// Ranges of the `data` values of the current event.
    data: Vec<Range<usize>>,
    /// Joined value of an event with several `data` lines.
    joined: Vec<u8>,
    /// The last line ended with a carriage return; a directly following line feed belongs to it.
    after_return: bool,
    /// True once the first line was read.
    has_begun: bool,
}

impl SseDecoder {
    /// Appends bytes from the socket.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.event_start > 0 {
            self.buffer.drain(..self.event_start);
            for range in &mut self.data {
                *range = range.start - self.event_start..range.end - self.event_start;
            }
            self.line_start -= self.event_start;
            self.scanned -= self.event_start;
            self.event_start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the data of the next complete event, if available. `ended` means that no more bytes follow, so
    /// an event without a final blank line counts as complete.
    pub(crate) fn next_data(&mut self, ended: bool) -> Option<Result<&str, SseError>> {
        while let Some(line) = self.next_line() {
            if !line.is_empty() {
                self.read_field(line);
                continue;
            }
            self.event_start = self.line_start;
            if !self.data.is_empty() {
                return Some(self.take_data());
            }
        }
        if ended {
            return self.remaining_data();
        }
        (self.buffer.len() - self.event_start > MAX_EVENT_BYTES).then_some(Err(SseError::TooLong))
    }

    /// Returns the remaining event at the end of the stream: some servers omit the last blank line. An event
    /// truncated in the middle is detected by the caller, because its data is not valid JSON.
    fn remaining_data(&mut self) -> Option<Result<&str, SseError>> {
        let line = self.line_start..self.buffer.len();
        if !line.is_empty() {
            let before = self.data.len();
            self.read_field(line);
            self.line_start = self.buffer.len();
            self.scanned = self.line_start;
            if self.data.len() == before {
                return Some(Err(SseError::CutShort));
            }
        }
        (!self.data.is_empty()).then(|| self.take_data())
    }

    /// Returns the next complete line, without its end.
    fn next_line(&mut self) -> Option<Range<usize>> {
        loop {
            let rest = &self.buffer[self.scanned..];
            let Some(at) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.scanned = self.buffer.len();
                return None;
            };
            let end = self.scanned + at;
            let is_return = self.buffer[end] == b'\r';
            let belongs_to_last = self.after_return && !is_return && end == self.line_start;
            self.after_return = is_return;
            self.scanned = end + 1;
            let mut start = std::mem::replace(&mut self.line_start, end + 1);
            if belongs_to_last {
                if self.event_start == start {
                    self.event_start = self.line_start;
                }
                continue;
            }
            if !self.has_begun {
                self.has_begun = true;
                if self.buffer[start..end].starts_with(BYTE_ORDER_MARK) {
                    start += BYTE_ORDER_MARK.len();
                }
            }
            return Some(start..end);
        }
    }

    /// Reads one non-empty line.
    fn read_field(&mut self, line: Range<usize>) {
        let Some(rest) = self.buffer[line.clone()].strip_prefix(b"data") else {
            return;
        };
        let skip = match rest {
            [] => 4,
            [b':', b' ', ..] => 6,
            [b':', ..] => 5,
            [..] => return,
        };
        self.data.push(line.start + skip..line.end);
    }

    /// Returns the data of the event whose lines were all read.
    fn take_data(&mut self) -> Result<&str, SseError> {
        let bytes = if let [one] = self.data.as_slice() {
            &self.buffer[one.clone()]
        } else {
            self.joined.clear();
            for (i, range) in self.data.iter().enumerate() {
                if i > 0 {
                    self.joined.push(b'\n');
                }
                self.joined.extend_from_slice(&self.buffer[range.clone()]);
            }
            &self.joined
        };
        self.data.clear();
        str::from_utf8(bytes).map_err(|_| SseError::NotUtf8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode_pieces(pieces: &[&[u8]]) -> Vec<String> {
        let mut decoder = SseDecoder::default();
        let mut found = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            while let Some(data) = decoder.next_data(false) {
                found.push(data.unwrap().to_owned());
            }
        }
        found
    }

    const ODD: &str = "\u{feff}data: one\r\n\r\n: ping\n\nevent: x\ndata:two\ndata: and a ümlaut €\nid: 7\n\ndatabase: no\ndata\n\nretry: 3\n\ndata:  spaced\r\rdata: cut";

    #[test]
    fn all_line_ends_and_fields_are_decoded() {
        assert_eq!(
            decode_pieces(&[ODD.as_bytes()]),
            ["one", "two\nand a ümlaut €", "", " spaced"]
        );
    }

    #[test]
    fn cut_at_any_byte_changes_nothing() {
        for cut in 0..ODD.len() {
            let (a, b) = ODD.as_bytes().split_at(cut);
            assert_eq!(
                decode_pieces(&[a, b]),
                ["one", "two\nand a ümlaut €", "", " spaced"],
                "cut at {cut}"
            );
        }
    }

    proptest! {
        #[test]
        fn many_cuts_change_nothing(sizes in prop::collection::vec(1usize..9, 200)) {
            let mut rest = ODD.as_bytes();
            let mut pieces = Vec::new();
            for size in sizes {
                let (piece, left) = rest.split_at(size.min(rest.len()));
                pieces.push(piece);
                rest = left;
            }
            prop_assert_eq!(decode_pieces(&pieces), ["one", "two\nand a ümlaut €", "", " spaced"]);
        }
    }

    #[test]
    fn unterminated_last_event_is_returned_at_end() {
        let mut decoder = SseDecoder::default();
        decoder.push(b"data: a\n\ndata: [DONE]");
        assert_eq!(decoder.next_data(false), Some(Ok("a")));
        assert_eq!(decoder.next_data(false), None);
        assert_eq!(decoder.next_data(true), Some(Ok("[DONE]")));
        assert_eq!(decoder.next_data(true), None);

        decoder.push(b"eve");
        assert_eq!(decoder.next_data(false), None);
        assert_eq!(decoder.next_data(true), Some(Err(SseError::CutShort)));
    }

    #[test]
    fn endless_event_is_refused() {
        let mut decoder = SseDecoder::default();
        decoder.push(b"data: ");
        let mebibyte = vec![b'x'; 1024 * 1024];
        for _ in 0..16 {
            assert_eq!(decoder.next_data(false), None);
            decoder.push(&mebibyte);
        }
        assert_eq!(decoder.next_data(false), Some(Err(SseError::TooLong)));
    }

    #[test]
    fn invalid_utf8_is_refused() {
        let mut decoder = SseDecoder::default();
        decoder.push(b"data: \xff\n\n");
        assert_eq!(decoder.next_data(false), Some(Err(SseError::NotUtf8)));
    }
}
