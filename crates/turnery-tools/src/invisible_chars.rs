//! Escapes text for a user who decides about it, so that no part of it hides or moves another.
//!
//! Applied once, where the text is shown. Escapes look like `⟨U+202E⟩`; a `⟨` in the text is escaped too, so
//! that no text can imitate an escape.

use crate::policy::is_invisible_char;
use std::{borrow::Cow, fmt::Write as _};

/// A longer run of blanks is shown as a count, because it could push the text after it out of view.
const MAX_BLANK_RUN: usize = 40;

/// Maximum number of consecutive combining marks shown unescaped; more would cover adjacent lines. The limit
/// of Unicode Technical Standard #39, section 5.4.
const MAX_COMBINING_RUN: usize = 4;

/// Opening bracket of every escape, such as `⟨U+202E⟩`.
const MARK_START: char = '\u{27e8}';

/// Stands for a line break within one line.
const LINE_BREAK: char = '\u{23ce}';

/// Escapes control, zero-width, bidirectional and other invisible characters, and excess combining marks, for
/// example as `⟨U+202E⟩`; counts long runs of spaces, tabs and line breaks, for example `⟨4050 blanks⟩`. A
/// `⟨` in the text is shown as `⟨U+27E8⟩`. Line breaks are kept.
#[must_use]
pub fn escape_invisible(text: &str) -> Cow<'_, str> {
    escape(text, false)
}

/// Escapes text for one line, such as a title: also shows a line break as `⏎`, and escapes a `⏎` in the text.
#[must_use]
pub fn escape_invisible_line(text: &str) -> Cow<'_, str> {
    escape(text, true)
}

fn escape(text: &str, one_line: bool) -> Cow<'_, str> {
    let is_odd = |c: char| match c {
        // Fast path for printable ASCII.
        ' '..='~' | '\n' => false,
        LINE_BREAK => one_line,
        c => c == MARK_START || is_invisible_char(c),
    };
    let (mut blanks, mut marks) = (0, 0);
    let is_plain = !text.chars().any(|c| {
        blanks = if is_blank(c) { blanks + 1 } else { 0 };
        marks = if is_combining(c) { marks + 1 } else { 0 };
        blanks > MAX_BLANK_RUN || marks > MAX_COMBINING_RUN || is_odd(c) || (one_line && c == '\n')
    });
    if is_plain {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    marks = 0;
    while let Some(c) = rest.chars().next() {
        let end = rest.find(|c| !is_blank(c)).unwrap_or(rest.len());
        if end > 0 {
            let (blank, after) = rest.split_at(end);
            if end > MAX_BLANK_RUN {
                let _ = write!(out, " {MARK_START}{end} blanks\u{27e9} ");
            } else if one_line {
                out.push_str(&blank.replace('\n', " \u{23ce} "));
            } else {
                out.push_str(blank);
            }
            rest = after;
            marks = 0;
            continue;
        }
        marks = if is_combining(c) && !is_odd(c) {
            marks + 1
        } else {
            0
        };
        if is_odd(c) || marks > MAX_COMBINING_RUN {
            let _ = write!(out, "{MARK_START}U+{:04X}\u{27e9}", u32::from(c));
        } else {
            out.push(c);
        }
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(out)
}

/// Returns true if a character is drawn onto the previous one. The standard library escapes such a character
/// only at the start of a text, together with characters that are not printable everywhere.
fn is_combining(c: char) -> bool {
    let is_escaped = |text: String| text.escape_debug().any(|c| c == '\\');
    !c.is_ascii() && is_escaped(c.into()) && !is_escaped(String::from_iter(['a', c]))
}

/// These characters take one byte each.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_unchanged() {
        for text in ["", "cargo test", "if a; then\n\tb\nfi", "grüße 日本語"] {
            assert_eq!(escape_invisible(text), text);
            assert!(matches!(escape_invisible(text), Cow::Borrowed(_)));
        }
        assert_eq!(escape_invisible(&" ".repeat(40)), " ".repeat(40));
    }

    #[test]
    fn hidden_characters_are_escaped() {
        assert_eq!(
            escape_invisible("a\u{202e}b\u{2066}c"),
            "a⟨U+202E⟩b⟨U+2066⟩c"
        );
        assert_eq!(escape_invisible("a\u{200b}b\u{feff}"), "a⟨U+200B⟩b⟨U+FEFF⟩");
        assert_eq!(
            escape_invisible("rm\r\x1b[8m x\0\u{e0041}"),
            "rm⟨U+000D⟩⟨U+001B⟩[8m x⟨U+0000⟩⟨U+E0041⟩"
        );
        assert_eq!(escape_invisible("a\u{a0}b\u{3164}"), "a⟨U+00A0⟩b⟨U+3164⟩");
    }

    #[test]
    fn long_blank_run_is_replaced_by_its_length() {
        let command = format!("make test{}; touch M", " ".repeat(4050));
        assert_eq!(
            escape_invisible(&command),
            "make test ⟨4050 blanks⟩ ; touch M"
        );
        let lines = format!("a{}b", "\n".repeat(41));
        assert_eq!(escape_invisible(&lines), "a ⟨41 blanks⟩ b");
        assert_eq!(escape_invisible_line(&lines), "a ⟨41 blanks⟩ b");
    }

    #[test]
    fn mark_characters_in_text_are_escaped() {
        assert_eq!(escape_invisible("a⟨U+202E⟩b"), "a⟨U+27E8⟩U+202E⟩b");
        assert_eq!(escape_invisible("⟨4050 blanks⟩"), "⟨U+27E8⟩4050 blanks⟩");
        assert_eq!(escape_invisible_line("ls ⏎ rm\nx"), "ls ⟨U+23CE⟩ rm ⏎ x");
        // Not one of the marks.
        assert_eq!(
            escape_invisible("\\u{202e} [4050 blanks] ⏎"),
            "\\u{202e} [4050 blanks] ⏎"
        );
    }

    #[test]
    fn excess_combining_marks_are_escaped() {
        // Vietnamese, Hebrew with points, Devanagari, Thai, and four marks on one letter.
        for text in [
            "e\u{302}\u{301}",
            "שּׁ\u{5b8}",
            "क्षि",
            "ที่",
            "a\u{300}\u{301}\u{302}\u{303}",
        ] {
            assert_eq!(escape_invisible(text), text);
        }
        let text = format!("a{}b", "\u{301}".repeat(6));
        let four = "\u{301}".repeat(4);
        assert_eq!(escape_invisible(&text), format!("a{four}⟨U+0301⟩⟨U+0301⟩b"));
        // Private-use characters are not combining.
        let icons = "\u{e0a0}".repeat(9);
        assert_eq!(escape_invisible(&icons), icons);
    }

    #[test]
    fn line_breaks_are_escaped_in_titles() {
        assert_eq!(escape_invisible_line("ls\nrm x"), "ls ⏎ rm x");
        assert_eq!(escape_invisible_line("a\u{202e}\nb"), "a⟨U+202E⟩ ⏎ b");
    }
}
