//! Show: small pieces of text for people, safe to print on a terminal.

use std::{borrow::Cow, fmt::Write as _};
use turnery_engine::Timestamp;
use turnery_tools::{ChangeTag, NO_NEWLINE, unified_diff, visible, visible_line};

/// Colours, or none of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(pub(crate) bool);

impl Paint {
    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }
    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }
    pub(crate) fn red(self, text: &str) -> String {
        self.wrap("31", text)
    }
    pub(crate) fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }
    fn wrap(self, code: &str, text: &str) -> String {
        match self.0 {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

/// The text without what could steer a terminal, for what is only read. What a person decides about is made
/// [`visible`].
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let steers = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    match text.contains(steers) {
        true => text.replace(steers, "\u{fffd}").into(),
        false => text.into(),
    }
}

/// The first line, cut to `width` characters.
pub(crate) fn line(text: &str, width: usize) -> String {
    title(text.lines().next().unwrap_or_default(), width)
}

/// All lines as one, cut to `width` characters.
pub(crate) fn title(text: &str, width: usize) -> String {
    let text = visible_line(text);
    if text.chars().count() <= width {
        return text.into_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// A change as a unified diff with three lines around each place. A `\r` is shown, unless all lines end with one
/// before and after.
pub(crate) fn diff(path: &str, old: Option<&str>, new: &str, paint: Paint) -> String {
    let mut text = paint.bold(&match old {
        Some(_) => format!("{path}\n"),
        None => format!("{path} (new file)\n"),
    });
    let ending = match old.is_some_and(has_only_crlf) && has_only_crlf(new) {
        true => "\r\n",
        false => "\n",
    };
    for hunk in unified_diff(old.unwrap_or_default(), new, 3) {
        let _ = writeln!(text, "{}", paint.dim(&hunk.header));
        for (tag, line) in hunk.lines {
            let shown = visible(line.strip_suffix(ending).unwrap_or(line));
            let _ = match tag {
                ChangeTag::Equal => writeln!(text, " {shown}"),
                ChangeTag::Delete => writeln!(text, "{}", paint.red(&format!("-{shown}"))),
                ChangeTag::Insert => writeln!(text, "{}", paint.green(&format!("+{shown}"))),
            };
            if !line.ends_with('\n') {
                text.push_str(NO_NEWLINE);
            }
        }
    }
    text
}

/// Whether all lines end in `\r\n`, and there is one.
fn has_only_crlf(text: &str) -> bool {
    !text.is_empty()
        && text
            .split_inclusive('\n')
            .all(|line| line.ends_with("\r\n"))
}

/// A moment, to the minute.
pub(crate) fn when(at: Timestamp) -> String {
    at.format("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_is_left() {
        assert_eq!(
            plain("rm \x1b[8m-rf\x1b[0m /\tx\n"),
            "rm \u{fffd}[8m-rf\u{fffd}[0m /\tx\n"
        );
        assert_eq!(plain("a\u{202e}b"), "a\u{fffd}b");
        assert!(matches!(plain("plain text"), Cow::Borrowed(_)));
    }

    #[test]
    fn one_line_of_many() {
        assert_eq!(line("all of it", 20), "all of it");
        assert_eq!(line("first\nsecond", 20), "first");
        assert_eq!(line("abcdefgh", 5), "abcd…");
    }

    #[test]
    fn a_diff_shows_what_goes_and_what_comes() {
        assert_eq!(
            diff(
                "src/a.rs",
                Some("one\ntwo\nthree\n"),
                "one\n2\nthree\n",
                Paint(false)
            ),
            "src/a.rs\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
        );
        assert_eq!(
            diff("b", None, "x\n", Paint(true)),
            "\x1b[1mb (new file)\n\x1b[0m\x1b[2m@@ -0,0 +1 @@\x1b[0m\n\x1b[32m+x\x1b[0m\n"
        );
    }
    /// What a person approves is what is written: an editor that takes a lone `\r` for the end of a line would show
    /// two.
    #[test]
    fn a_diff_shows_how_lines_end() {
        let shown = diff("a.sh", Some("x\n"), "x\r\n# y\rrm z", Paint(false));
        let mark = visible("\r");
        assert_eq!(
            shown,
            format!(
                "a.sh\n@@ -1 +1,2 @@\n-x\n+x{mark}\n+# y{mark}rm z\n\\ No newline at end of file\n"
            )
        );
        assert_eq!(
            diff("b", Some("x\r\n"), "y\r\n", Paint(false)),
            "b\n@@ -1 +1 @@\n-x\n+y\n"
        );
    }
}
