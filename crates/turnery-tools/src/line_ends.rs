//! Line ends: models write `\n`; a file keeps the ones that it has.

use std::{borrow::Cow, ops::Range};

/// A text with every `\r\n` made `\n`, and the way back.
pub(crate) struct Unified {
    pub(crate) text: String,
    /// Where in `text` the line feeds are that lost a carriage return, ascending.
    lost: Vec<usize>,
    windows: bool,
}

impl Unified {
    pub(crate) fn new(original: &str) -> Self {
        let mut text = String::with_capacity(original.len());
        let mut lost = Vec::new();
        for (index, part) in original.split("\r\n").enumerate() {
            if index > 0 {
                lost.push(text.len());
                text.push('\n');
            }
            text.push_str(part);
        }
        let bare = text.bytes().filter(|byte| *byte == b'\n').count() - lost.len();
        let windows = lost.len() > bare;
        Self {
            text,
            lost,
            windows,
        }
    }

    /// The same range in the original. Never splits a `\r\n`.
    pub(crate) fn original(&self, range: &Range<usize>) -> Range<usize> {
        let shift = |at: usize| at + self.lost.partition_point(|lost| *lost < at);
        shift(range.start)..shift(range.end)
    }

    /// `text`, which has bare line feeds only, with the line ends that most of the file has.
    pub(crate) fn adopt<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.windows {
            true => Cow::Owned(text.replace('\n', "\r\n")),
            false => Cow::Borrowed(text),
        }
    }
}
