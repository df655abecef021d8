//! Decodes server-sent events from bytes; yields the data of one event at a time, borrowed from the buffer.
//!
//! Of the field `event` only the name `error` matters; in the model APIs the data repeats the others. Errors of servers
//! also come as lines `error: ...`, and as JSON without any field. The result does not depend on how the bytes were split. Once more than [`MAX_EVENT_BYTES`] of an incomplete event are buffered,
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

/// Data of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SseEvent<'a> {
    pub(crate) data: &'a str,
    pub(crate) kind: SseKind,
}

/// Form of the data of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SseKind {
    /// Lines `data: ...`.
    #[default]
    Data,
    /// Lines `error: ...`, or data of an event with the name `error`.
    Error,
    /// JSON without a field name, which is not an event.
    Bare,
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
    /// Ranges of the values of the current event.
    data: Vec<Range<usize>>,
    /// Kind of the current event.
    kind: SseKind,
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

    /// Returns the next complete event, if available. `ended` means that no more bytes follow, so an event without a
    /// final blank line counts as complete.
    pub(crate) fn next_event(&mut self, ended: bool) -> Option<Result<SseEvent<'_>, SseError>> {
        while let Some(line) = self.next_line() {
            if !line.is_empty() {
                self.read_field(line);
                continue;
            }
            self.event_start = self.line_start;
            if !self.data.is_empty() {
                return Some(self.take_event());
            }
            self.kind = SseKind::Data;
        }
        if ended {
            return self.remaining_event();
        }
        (self.buffer.len() - self.event_start > MAX_EVENT_BYTES).then_some(Err(SseError::TooLong))
    }

    /// Returns the remaining event at the end of the stream: some servers omit the last blank line. An event
    /// truncated in the middle is detected by the caller, because its data is not valid JSON.
    fn remaining_event(&mut self) -> Option<Result<SseEvent<'_>, SseError>> {
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
        (!self.data.is_empty()).then(|| self.take_event())
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
        let bytes = &self.buffer[line.clone()];
        let skip = match bytes {
            _ if field_value(bytes, b"event")
                .is_some_and(|at| bytes.get(at..) == Some(b"error".as_slice())) =>
            {
                self.kind = SseKind::Error;
                return;
            }
            [b'{' | b'[', ..] if self.data.is_empty() => {
                self.kind = SseKind::Bare;
                0
            }
            _ => match (field_value(bytes, b"data"), field_value(bytes, b"error")) {
                (Some(at), _) => {
                    if self.kind == SseKind::Bare {
                        self.kind = SseKind::Data;
                        self.data.clear();
                    }
                    at
                }
                // Without a value it is a word of something else.
                (None, Some(at)) if at < bytes.len() => {
                    self.kind = SseKind::Error;
                    at
                }
                (None, Some(_) | None) if self.kind == SseKind::Bare => 0,
                (None, Some(_) | None) => return,
            },
        };
        self.data.push(line.start + skip..line.end);
    }

    /// Returns the event whose lines were all read.
    fn take_event(&mut self) -> Result<SseEvent<'_>, SseError> {
        let kind = std::mem::take(&mut self.kind);
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
        let data = str::from_utf8(bytes).map_err(|_| SseError::NotUtf8)?;
        Ok(SseEvent { data, kind })
    }
}

/// Returns where the value of the field `name` starts in a line; `None` if the line is not of this field.
fn field_value(line: &[u8], name: &[u8]) -> Option<usize> {
    let rest = line.strip_prefix(name)?;
    match rest {
        [] => Some(name.len()),
        [b':', b' ', ..] => Some(name.len() + 2),
        [b':', ..] => Some(name.len() + 1),
        [..] => None,
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
            while let Some(event) = decoder.next_event(false) {
                let event = event.unwrap();
                assert_eq!(event.kind, SseKind::Data);
                found.push(event.data.to_owned());
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

    fn event(data: &str, kind: SseKind) -> Option<Result<SseEvent<'_>, SseError>> {
        Some(Ok(SseEvent { data, kind }))
    }

    #[test]
    fn unterminated_last_event_is_returned_at_end() {
        let mut decoder = SseDecoder::default();
        decoder.push(b"data: a\n\ndata: [DONE]");
        assert_eq!(decoder.next_event(false), event("a", SseKind::Data));
        assert_eq!(decoder.next_event(false), None);
        assert_eq!(decoder.next_event(true), event("[DONE]", SseKind::Data));
        assert_eq!(decoder.next_event(true), None);

        decoder.push(b"eve");
        assert_eq!(decoder.next_event(false), None);
        assert_eq!(decoder.next_event(true), Some(Err(SseError::CutShort)));
    }

    /// Quirk 49: errors as lines, as named events and without any field.
    #[test]
    fn errors_are_told_from_data_however_written() {
        use SseKind::{Bare, Data, Error};
        for (text, expected) in [
            ("error: {\"a\":1}\n\n", vec![("{\"a\":1}", Error)]),
            ("error:gone", vec![("gone", Error)]),
            (
                "event: error\ndata: x\n\ndata: y\n\n",
                vec![("x", Error), ("y", Data)],
            ),
            ("event:error\r\ndata: x\r\n\r\n", vec![("x", Error)]),
            ("{\n  \"error\": 1\n}", vec![("{\n  \"error\": 1\n}", Bare)]),
            (
                "[{\"error\":1}]\n\ndata: y\n\n",
                vec![("[{\"error\":1}]", Bare), ("y", Data)],
            ),
            ("{\"a\":1}\ndata: y\n\n", vec![("y", Data)]),
            ("event: errors\ndata: x\n\n", vec![("x", Data)]),
            ("event: error\n\ndata: x\n\n", vec![("x", Data)]),
            ("data: {\ndata: }\n\n", vec![("{\n}", Data)]),
            ("error\ndata: x\n\n", vec![("x", Data)]),
        ] {
            for cut in 0..text.len() {
                let mut decoder = SseDecoder::default();
                let mut found = Vec::new();
                let (first, second) = text.as_bytes().split_at(cut);
                for (bytes, ended) in [(first, false), (second, true)] {
                    decoder.push(bytes);
                    while let Some(event) = decoder.next_event(ended) {
                        let event = event.unwrap();
                        found.push((event.data.to_owned(), event.kind));
                    }
                }
                let found: Vec<_> = found
                    .iter()
                    .map(|(data, kind)| (data.as_str(), *kind))
                    .collect();
                assert_eq!(found, expected, "{text:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn endless_event_is_refused() {
        let mut decoder = SseDecoder::default();
        decoder.push(b"data: ");
        let mebibyte = vec![b'x'; 1024 * 1024];
        for _ in 0..16 {
            assert_eq!(decoder.next_event(false), None);
            decoder.push(&mebibyte);
        }
        assert_eq!(decoder.next_event(false), Some(Err(SseError::TooLong)));
    }

    #[test]
    fn invalid_utf8_is_refused() {
        let mut decoder = SseDecoder::default();
        decoder.push(b"data: \xff\n\n");
        assert_eq!(decoder.next_event(false), Some(Err(SseError::NotUtf8)));
    }
}
