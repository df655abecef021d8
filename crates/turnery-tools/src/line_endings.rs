//! Converts line endings: models write `\n`, and files keep their own.

use std::{borrow::Cow, ops::Range};

/// A text with every `\r\n` replaced by `\n`, and the mapping back.
pub(crate) struct NormalisedText {
    pub(crate) text: String,
    /// Positions in `text` of line feeds that had a carriage return, ascending.
    crlf_positions: Vec<usize>,
    uses_crlf: bool,
}

impl NormalisedText {
    pub(crate) fn new(original: &str) -> Self {
        let mut text = String::with_capacity(original.len());
        let mut crlf_positions = Vec::new();
        for (index, part) in original.split("\r\n").enumerate() {
            if index > 0 {
                crlf_positions.push(text.len());
                text.push('\n');
            }
            text.push_str(part);
        }
        let bare = text.bytes().filter(|byte| *byte == b'\n').count() - crlf_positions.len();
        let windows = crlf_positions.len() > bare;
        Self {
            text,
            crlf_positions,
            uses_crlf: windows,
        }
    }

    /// Returns the corresponding range in the original text. Never splits a `\r\n`.
    pub(crate) fn original_range(&self, range: &Range<usize>) -> Range<usize> {
        let shift = |at: usize| {
            at + self
                .crlf_positions
                .partition_point(|crlf_positions| *crlf_positions < at)
        };
        shift(range.start)..shift(range.end)
    }

    /// Converts `text`, which has bare line feeds only, to the line ending that the file mostly uses.
    pub(crate) fn apply_line_endings<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.uses_crlf {
            true => Cow::Owned(text.replace('\n', "\r\n")),
            false => Cow::Borrowed(text),
        }
    }
}
