//! Text as a person is shown it who decides about it: nothing in it hides or moves another part.

use crate::policy::is_hidden;
use std::{borrow::Cow, fmt::Write as _};

/// A longer run of blanks is shown as a count: it could push what follows out of view.
const LONGEST_BLANK: usize = 40;

/// Spells out control, zero-width, bidirectional and other characters that do not show, for example `\u{202e}`,
/// and counts long runs of spaces, tabs and line breaks, for example `[4050 blanks]`. Line breaks stay.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_odd = |c: char| c != '\n' && is_hidden(c);
    let mut run = 0;
    let has_long_blank = text.chars().any(|c| {
        run = if is_blank(c) { run + 1 } else { 0 };
        run > LONGEST_BLANK
    });
    if !has_long_blank && !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let end = rest.find(|c| !is_blank(c)).unwrap_or(rest.len());
        let (blank, after) = rest.split_at(end);
        if blank.len() > LONGEST_BLANK {
            let _ = write!(out, " [{} blanks] ", blank.len());
            rest = after;
        } else if !blank.is_empty() {
            out.push_str(blank);
            rest = after;
        } else {
            match is_odd(c) {
                true => out.extend(c.escape_unicode()),
                false => out.push(c),
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    Cow::Owned(out)
}

/// The same on one line, for titles: a line break is shown as `⏎`.
#[must_use]
pub fn visible_line(text: &str) -> Cow<'_, str> {
    let text = visible(text);
    match text.contains('\n') {
        true => Cow::Owned(text.replace('\n', " \u{23ce} ")),
        false => text,
    }
}

/// All of these take one byte.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays_as_it_is() {
        for text in ["", "cargo test", "if a; then\n\tb\nfi", "grüße 日本語"] {
            assert_eq!(visible(text), text);
            assert!(matches!(visible(text), Cow::Borrowed(_)));
        }
        assert_eq!(visible(&" ".repeat(40)), " ".repeat(40));
    }

    #[test]
    fn hidden_characters_are_spelled_out() {
        assert_eq!(visible("a\u{202e}b\u{2066}c"), "a\\u{202e}b\\u{2066}c");
        assert_eq!(visible("a\u{200b}b\u{feff}"), "a\\u{200b}b\\u{feff}");
        assert_eq!(visible("rm\r\x1b[8m x\0"), "rm\\u{d}\\u{1b}[8m x\\u{0}");
        assert_eq!(visible("a\u{a0}b\u{3164}"), "a\\u{a0}b\\u{3164}");
    }

    #[test]
    fn what_follows_many_blanks_stays_in_view() {
        let command = format!("make test{}; touch M", " ".repeat(4050));
        assert_eq!(visible(&command), "make test [4050 blanks] ; touch M");
        let lines = format!("a{}b", "\n".repeat(41));
        assert_eq!(visible(&lines), "a [41 blanks] b");
    }

    #[test]
    fn a_title_is_one_line() {
        assert_eq!(visible_line("ls\nrm x"), "ls \u{23ce} rm x");
        let shown = visible_line("a\u{202e}\nb").into_owned();
        assert_eq!(visible_line(&shown), shown, "twice is the same");
    }
}
