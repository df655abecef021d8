//! Server-sent events: bytes in, the data of one event at a time out, borrowed from the buffer.
//!
//! Only `data` matters to the model APIs: the name of an event is repeated inside it. What must hold:
//! the result does not depend on how the bytes were cut, and no event takes more memory than the cap.

use std::{ops::Range, str};

/// The longest event that is taken. Unit: bytes.
pub(crate) const LONGEST_EVENT: usize = 16 * 1024 * 1024;

/// The byte-order mark that a stream may begin with.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Why a stream cannot be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// One event is longer than the cap.
    #[error("one event is longer than {} MiB", LONGEST_EVENT / 1024 / 1024)]
    TooLong,
    /// Text that is not UTF-8.
    #[error("an event is not UTF-8")]
    NotText,
    /// The last line broke off.
    #[error("the last event broke off")]
    CutShort,
}

/// Takes a stream of events apart.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    buffer: Vec<u8>,
    /// Where the current event begins; what lies before it is done with.
    event: usize,
    /// Where the current line begins.
    line: usize,
    /// How far line ends were looked for.
    seen: usize,
    /// The values of the current event's `data` lines.
    data: Vec<Range<usize>>,
    /// The value of an event with several `data` lines.
    joined: Vec<u8>,
    /// The last line ended with a carriage return: a line feed right after it belongs to it.
    after_return: bool,
    /// The first line was read.
    begun: bool,
}

impl Decoder {
    /// Take in bytes as they came from the socket.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.event > 0 {
            self.buffer.drain(..self.event);
            for range in &mut self.data {
                *range = range.start - self.event..range.end - self.event;
            }
            self.line -= self.event;
            self.seen -= self.event;
            self.event = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The data of the next whole event, if it is there. `ended`: no more bytes will come, so that what
    /// has no blank line after it counts as well.
    pub(crate) fn next(&mut self, ended: bool) -> Option<Result<&str, Unreadable>> {
        while let Some(line) = self.next_line() {
            if !line.is_empty() {
                self.field(line);
                continue;
            }
            self.event = self.line;
            if !self.data.is_empty() {
                return Some(self.take());
            }
        }
        if ended {
            return self.rest();
        }
        (self.buffer.len() - self.event > LONGEST_EVENT).then_some(Err(Unreadable::TooLong))
    }

    /// What is left at the end of the stream: some servers leave out the last blank line. An event
    /// that broke off in the middle is for the caller to notice: its data is then no JSON.
    fn rest(&mut self) -> Option<Result<&str, Unreadable>> {
        let line = self.line..self.buffer.len();
        if !line.is_empty() {
            let before = self.data.len();
            self.field(line);
            self.line = self.buffer.len();
            self.seen = self.line;
            if self.data.len() == before {
                return Some(Err(Unreadable::CutShort));
            }
        }
        (!self.data.is_empty()).then(|| self.take())
    }

    /// The next whole line, without its end.
    fn next_line(&mut self) -> Option<Range<usize>> {
        loop {
            let rest = &self.buffer[self.seen..];
            let Some(at) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.seen = self.buffer.len();
                return None;
            };
            let end = self.seen + at;
            let is_return = self.buffer[end] == b'\r';
            let belongs_to_last = self.after_return && !is_return && end == self.line;
            self.after_return = is_return;
            self.seen = end + 1;
            let mut start = std::mem::replace(&mut self.line, end + 1);
            if belongs_to_last {
                if self.event == start {
                    self.event = self.line;
                }
                continue;
            }
            if !self.begun {
                self.begun = true;
                if self.buffer[start..end].starts_with(MARK) {
                    start += MARK.len();
                }
            }
            return Some(start..end);
        }
    }

    /// Read one line that is not empty.
    fn field(&mut self, line: Range<usize>) {
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

    /// The data of the event whose lines were all read.
    fn take(&mut self) -> Result<&str, Unreadable> {
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
        str::from_utf8(bytes).map_err(|_| Unreadable::NotText)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut decoder = Decoder::default();
        let mut found = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            while let Some(data) = decoder.next(false) {
                found.push(data.unwrap().to_owned());
            }
        }
        found
    }

    const ODD: &str = "\u{feff}data: one\r\n\r\n: ping\n\nevent: x\ndata:two\ndata: and a ümlaut €\nid: 7\n\ndatabase: no\ndata\n\nretry: 3\n\ndata:  spaced\r\rdata: cut";

    #[test]
    fn all_line_ends_marks_comments_and_several_data_lines() {
        assert_eq!(
            events(&[ODD.as_bytes()]),
            ["one", "two\nand a ümlaut €", "", " spaced"]
        );
    }

    #[test]
    fn a_cut_anywhere_changes_nothing() {
        for cut in 0..ODD.len() {
            let (a, b) = ODD.as_bytes().split_at(cut);
            assert_eq!(
                events(&[a, b]),
                ["one", "two\nand a ümlaut €", "", " spaced"],
                "cut at {cut}"
            );
        }
    }

    proptest! {
        #[test]
        fn so_do_many_cuts(sizes in prop::collection::vec(1usize..9, 200)) {
            let mut rest = ODD.as_bytes();
            let mut pieces = Vec::new();
            for size in sizes {
                let (piece, left) = rest.split_at(size.min(rest.len()));
                pieces.push(piece);
                rest = left;
            }
            prop_assert_eq!(events(&pieces), ["one", "two\nand a ümlaut €", "", " spaced"]);
        }
    }

    #[test]
    fn the_rest_is_what_has_no_blank_line_after_it() {
        let mut decoder = Decoder::default();
        decoder.push(b"data: a\n\ndata: [DONE]");
        assert_eq!(decoder.next(false), Some(Ok("a")));
        assert_eq!(decoder.next(false), None);
        assert_eq!(decoder.next(true), Some(Ok("[DONE]")));
        assert_eq!(decoder.next(true), None);

        decoder.push(b"eve");
        assert_eq!(decoder.next(false), None);
        assert_eq!(decoder.next(true), Some(Err(Unreadable::CutShort)));
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut decoder = Decoder::default();
        decoder.push(b"data: ");
        let mebibyte = vec![b'x'; 1024 * 1024];
        for _ in 0..16 {
            assert_eq!(decoder.next(false), None);
            decoder.push(&mebibyte);
        }
        assert_eq!(decoder.next(false), Some(Err(Unreadable::TooLong)));
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let mut decoder = Decoder::default();
        decoder.push(b"data: \xff\n\n");
        assert_eq!(decoder.next(false), Some(Err(Unreadable::NotText)));
    }
}
