//! Checks that every line is one UTF-8 message of bounded length and nothing else is written (TR-1, TR-2,
//! TR-3, TR-9).

use super::recorder::RuleRecorder;
use crate::deep_json;
use serde_json::Value;

/// Longest line that the official TypeScript client reads. Unit: bytes.
const MAX_LINE_BYTES: usize = 32 << 20;
/// Number of lines searched for the rest of a split message.
const MAX_SPLIT_LINES: usize = 2000;

#[derive(Debug, Default)]
pub(super) struct FramingRules {
    /// True if the client sent a batch, so that an array may come back.
    has_sent_batch: bool,
    /// Lines that may be the beginning of a message split over several lines.
    partial_lines: Vec<String>,
}

/// Parsed line of output.
pub(super) enum ParsedLine {
    /// JSON object.
    Message(Value),
    NoMessage,
}

impl FramingRules {
    pub(super) fn on_sent(&mut self, message: &Value) {
        self.has_sent_batch |= message.is_array();
    }

    pub(super) fn on_received_line(
        &mut self,
        line: &[u8],
        recorder: &mut RuleRecorder,
    ) -> ParsedLine {
        if line.len() > MAX_LINE_BYTES {
            recorder.record_violation("TR-9", format!("it has {} bytes", line.len()));
        }
        let (line, has_end) = match line.strip_suffix(b"\n") {
            Some(line) => (line, true),
            None => (line, false),
        };
        let text = match std::str::from_utf8(line) {
            Ok(text) => {
                recorder.record_observed("TR-1");
                text
            }
            Err(error) => {
                recorder.record_violation("TR-1", format!("it is no UTF-8: {error}"));
                return ParsedLine::NoMessage;
            }
        };
        recorder.record_check("TR-2", has_end, || "the last line has no end".to_owned());
        let error = match deep_json::parse_json(text.as_bytes()) {
            Ok(value @ Value::Object(_)) => {
                self.partial_lines.clear();
                recorder.record_observed("TR-3");
                return ParsedLine::Message(value);
            }
            Ok(Value::Array(_)) if self.has_sent_batch => return ParsedLine::NoMessage,
            Ok(_) => {
                recorder.record_violation("TR-3", "it is JSON, but no message");
                return ParsedLine::NoMessage;
            }
            Err(error) => error,
        };
        if !self.partial_lines.is_empty() {
            return self.continue_split_message(text);
        }
        let trimmed = text.trim();
        if error.is_eof() && trimmed.starts_with('{') {
            recorder.record_violation("TR-2", "a message is cut into several lines");
            self.partial_lines.push(text.to_owned());
        } else if trimmed.starts_with("{\"") && trimmed.contains("}{") {
            recorder.record_violation("TR-2", "several messages are in one line");
        } else {
            recorder.record_violation("TR-3", "it is no message");
        }
        ParsedLine::NoMessage
    }

    /// Adds a line of a split message; the violation has already been reported.
    fn continue_split_message(&mut self, text: &str) -> ParsedLine {
        self.partial_lines.push(text.to_owned());
        let whole = self.partial_lines.join("\n");
        match deep_json::parse_json(whole.as_bytes()) {
            Ok(value) => {
                self.partial_lines.clear();
                ParsedLine::Message(value)
            }
            Err(error) => {
                if !error.is_eof() || self.partial_lines.len() > MAX_SPLIT_LINES {
                    self.partial_lines.clear();
                }
                ParsedLine::NoMessage
            }
        }
    }
}
