//! Hits: the lines found so far, bounded in number and in bytes.

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};
use std::{fmt::Write as _, io};
use tokio_util::sync::CancellationToken;

const MOST_BYTES: usize = 50 * 1024;
/// Of a longer line, the part around the match is shown.
const LONGEST_SHOWN: usize = 300;

pub(super) struct Hits {
    text: String,
    count: usize,
    most: usize,
    more: bool,
}

impl Hits {
    pub(super) fn new(most: usize) -> Self {
        Self {
            text: String::new(),
            count: 0,
            most,
            more: false,
        }
    }

    /// Whether something was found that had no room.
    pub(super) fn full(&self) -> bool {
        self.more
    }

    pub(super) fn finish(mut self) -> String {
        if self.count == 0 {
            self.text += "[no match]\n";
        } else if self.more {
            // Writing to a string cannot fail.
            let _ = writeln!(
                self.text,
                "[the first {} matches; narrow the pattern, path or glob]",
                self.count
            );
        }
        self.text
    }
}

/// Takes the hits of one file.
pub(super) struct InFile<'a> {
    pub(super) matcher: &'a RegexMatcher,
    pub(super) shown: &'a str,
    pub(super) hits: &'a mut Hits,
    pub(super) cancel: &'a CancellationToken,
}

impl Sink for InFile<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let hits = &mut *self.hits;
        if hits.count == hits.most || hits.text.len() >= MOST_BYTES {
            hits.more = true;
            return Ok(false);
        }
        hits.count += 1;
        let at = self
            .matcher
            .find(found.bytes())
            .ok()
            .flatten()
            .map_or(0, |found| found.start());
        let line = around(found.bytes(), at);
        let number = found.line_number().unwrap_or(0);
        let _ = writeln!(hits.text, "{}:{number}: {line}", self.shown);
        Ok(!self.cancel.is_cancelled())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let line = around(context.bytes(), 0);
        let number = context.line_number().unwrap_or(0);
        let _ = writeln!(self.hits.text, "{}-{number}- {line}", self.shown);
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.hits.text += "--\n";
        Ok(true)
    }
}

/// The line without its end, cut to what lies around `at`.
fn around(line: &[u8], at: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= LONGEST_SHOWN {
        return String::from_utf8_lossy(line).into_owned();
    }
    let start = at.saturating_sub(LONGEST_SHOWN / 3).min(line.len());
    let end = (start + LONGEST_SHOWN).min(line.len());
    let before = if start > 0 { "… " } else { "" };
    let after = if end < line.len() { " …" } else { "" };
    let part = String::from_utf8_lossy(&line[start..end]);
    format!("{before}{part}{after}")
}
