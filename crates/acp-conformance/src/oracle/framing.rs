//! Framing: a line of UTF-8 is one message, and there is nothing but messages (TR-1, TR-2, TR-3).

use super::Found;
use crate::deep;
use serde_json::Value;

/// The official TypeScript client reads no longer line. Unit: bytes.
const LONGEST: usize = 32 << 20;
/// No message is looked for in more lines than these.
const MOST_LINES: usize = 2000;

#[derive(Debug, Default)]
pub(super) struct Framing {
    /// The client has sent a batch: an array may come back.
    batches: bool,
    /// Lines that may be the beginning of a message that was cut into several.
    begun: Vec<String>,
}

/// What a line is.
pub(super) enum Line {
    /// An object.
    Message(Value),
    Nothing,
}

impl Framing {
    pub(super) fn sent(&mut self, message: &Value) {
        self.batches |= message.is_array();
    }

    pub(super) fn heard(&mut self, line: &[u8], found: &mut Found) -> Line {
        if line.len() > LONGEST {
            found.broken("TR-9", format!("it has {} bytes", line.len()));
        }
        let (line, has_end) = match line.strip_suffix(b"\n") {
            Some(line) => (line, true),
            None => (line, false),
        };
        let text = match std::str::from_utf8(line) {
            Ok(text) => {
                found.seen("TR-1");
                text
            }
            Err(error) => {
                found.broken("TR-1", format!("it is no UTF-8: {error}"));
                return Line::Nothing;
            }
        };
        found.holds("TR-2", has_end, || "the last line has no end".to_owned());
        let error = match deep::read(text.as_bytes()) {
            Ok(value @ Value::Object(_)) => {
                self.begun.clear();
                found.seen("TR-3");
                return Line::Message(value);
            }
            Ok(Value::Array(_)) if self.batches => return Line::Nothing,
            Ok(_) => {
                found.broken("TR-3", "it is JSON, but no message");
                return Line::Nothing;
            }
            Err(error) => error,
        };
        if !self.begun.is_empty() {
            return self.go_on(text);
        }
        let trimmed = text.trim();
        if error.is_eof() && trimmed.starts_with('{') {
            found.broken("TR-2", "a message is cut into several lines");
            self.begun.push(text.to_owned());
        } else if trimmed.starts_with("{\"") && trimmed.contains("}{") {
            found.broken("TR-2", "several messages are in one line");
        } else {
            found.broken("TR-3", "it is no message");
        }
        Line::Nothing
    }

    /// One more line of a message that was cut: that was said already.
    fn go_on(&mut self, text: &str) -> Line {
        self.begun.push(text.to_owned());
        let whole = self.begun.join("\n");
        match deep::read(whole.as_bytes()) {
            Ok(value) => {
                self.begun.clear();
                Line::Message(value)
            }
            Err(error) => {
                if !error.is_eof() || self.begun.len() > MOST_LINES {
                    self.begun.clear();
                }
                Line::Nothing
            }
        }
    }
}
