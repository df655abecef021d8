//! Collects the lines found, bounded in number and in bytes.

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};
use std::{fmt::Write as _, io};
use tokio_util::sync::CancellationToken;

const MAX_BYTES: usize = 50 * 1024;
/// Maximum length of a shown line; of a longer one only the part around the match is shown. Unit: bytes.
const MAX_SHOWN_BYTES: usize = 300;

pub(super) struct SearchResults {
    text: String,
    count: usize,
    max_results: usize,
    is_truncated: bool,
}

impl SearchResults {
    pub(super) fn new(max_results: usize) -> Self {
        Self {
            text: String::new(),
            count: 0,
            max_results,
            is_truncated: false,
        }
    }

    /// Returns true if a match was found that did not fit.
    pub(super) fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    pub(super) fn into_text(mut self) -> String {
        if self.count == 0 {
            self.text += "[no match]\n";
        } else if self.is_truncated {
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

/// Collects the matches of one file.
pub(super) struct FileSink<'a> {
    pub(super) matcher: &'a RegexMatcher,
    pub(super) display_path: &'a str,
    pub(super) results: &'a mut SearchResults,
    pub(super) cancel: &'a CancellationToken,
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let hits = &mut *self.results;
        if hits.count == hits.max_results || hits.text.len() >= MAX_BYTES {
            hits.is_truncated = true;
            return Ok(false);
        }
        hits.count += 1;
        let at = self
            .matcher
            .find(found.bytes())
            .ok()
            .flatten()
            .map_or(0, |found| found.start());
        let line = line_excerpt(found.bytes(), at);
        let number = found.line_number().unwrap_or(0);
        let _ = writeln!(hits.text, "{}:{number}: {line}", self.display_path);
        Ok(!self.cancel.is_cancelled())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let line = line_excerpt(context.bytes(), 0);
        let number = context.line_number().unwrap_or(0);
        let _ = writeln!(self.results.text, "{}-{number}- {line}", self.display_path);
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.results.text += "--\n";
        Ok(true)
    }
}

/// Returns the line without its line break, cut to the part around `at`.
fn line_excerpt(line: &[u8], at: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MAX_SHOWN_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    let start = at.saturating_sub(MAX_SHOWN_BYTES / 3).min(line.len());
    let end = (start + MAX_SHOWN_BYTES).min(line.len());
    let before = if start > 0 { "… " } else { "" };
    let after = if end < line.len() { " …" } else { "" };
    let part = String::from_utf8_lossy(&line[start..end]);
    format!("{before}{part}{after}")
}
