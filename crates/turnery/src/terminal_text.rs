//! Formats text so that it is safe to print on a terminal.

use std::{borrow::Cow, fmt::Write as _};
use turnery_engine::Timestamp;
use turnery_tools::{
    ChangeTag, NO_NEWLINE_MARKER, escape_invisible, escape_invisible_line, unified_diff,
};

/// Adds colours if enabled.
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

/// Replaces control and bidirectional characters that a terminal would act on with U+FFFD, except newlines
/// and tabs. Text that the user decides about goes through [`escape_invisible`] instead.
pub(crate) fn replace_control_chars(text: &str) -> Cow<'_, str> {
    let steers = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    match text.contains(steers) {
        true => text.replace(steers, "\u{fffd}").into(),
        false => text.into(),
    }
}

/// Returns the first line, cut to `width` characters.
pub(crate) fn first_line(text: &str, width: usize) -> String {
    single_line(text.lines().next().unwrap_or_default(), width)
}

/// Returns all lines joined into one, cut to `width` characters.
pub(crate) fn single_line(text: &str, width: usize) -> String {
    let text = escape_invisible_line(text);
    if text.chars().count() <= width {
        return text.into_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Renders a change as a unified diff with three lines of context. A `\r` is made visible unless all lines end with
/// one before and after.
pub(crate) fn render_diff(path: &str, old: Option<&str>, new: &str, paint: Paint) -> String {
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
            let shown = escape_invisible(line.strip_suffix(ending).unwrap_or(line));
            let _ = match tag {
                ChangeTag::Equal => writeln!(text, " {shown}"),
                ChangeTag::Delete => writeln!(text, "{}", paint.red(&format!("-{shown}"))),
                ChangeTag::Insert => writeln!(text, "{}", paint.green(&format!("+{shown}"))),
            };
            if !line.ends_with('\n') {
                text.push_str(NO_NEWLINE_MARKER);
            }
        }
    }
    text
}

/// Returns true if all lines end in `\r\n` and there is at least one.
fn has_only_crlf(text: &str) -> bool {
    !text.is_empty()
        && text
            .split_inclusive('\n')
            .all(|line| line.ends_with("\r\n"))
}

/// Formats a timestamp to the minute.
pub(crate) fn format_timestamp(at: Timestamp) -> String {
    at.format("%Y-%m-%d %H:%M").to_string()
}

/// Formats a size with its unit.
pub(crate) fn format_bytes(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units.into_iter().find(|(_, shift)| bytes >> shift > 0);
    match unit {
        // Tenths, rounded down.
        Some((unit, shift)) => {
            let tenths = (bytes >> (shift - 10)).saturating_mul(10) >> 10;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_control_characters_are_replaced() {
        assert_eq!(
            replace_control_chars("rm \x1b[8m-rf\x1b[0m /\tx\n"),
            "rm \u{fffd}[8m-rf\u{fffd}[0m /\tx\n"
        );
        assert_eq!(replace_control_chars("a\u{202e}b"), "a\u{fffd}b");
        assert!(matches!(
            replace_control_chars("plain text"),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn first_line_is_cut_to_width() {
        assert_eq!(first_line("all of it", 20), "all of it");
        assert_eq!(first_line("first\nsecond", 20), "first");
        assert_eq!(first_line("abcdefgh", 5), "abcd…");
    }

    #[test]
    fn diff_shows_removed_and_added_lines() {
        assert_eq!(
            render_diff(
                "src/a.rs",
                Some("one\ntwo\nthree\n"),
                "one\n2\nthree\n",
                Paint(false)
            ),
            "src/a.rs\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
        );
        assert_eq!(
            render_diff("b", None, "x\n", Paint(true)),
            "\x1b[1mb (new file)\n\x1b[0m\x1b[2m@@ -0,0 +1 @@\x1b[0m\n\x1b[32m+x\x1b[0m\n"
        );
    }
    /// The user must see exactly what is written: an editor that treats a lone `\r` as the end of a line would
    /// show two lines.
    #[test]
    fn diff_shows_line_endings() {
        let shown = render_diff("a.sh", Some("x\n"), "x\r\n# y\rrm z", Paint(false));
        let mark = escape_invisible("\r");
        assert_eq!(
            shown,
            format!(
                "a.sh\n@@ -1 +1,2 @@\n-x\n+x{mark}\n+# y{mark}rm z\n\\ No newline at end of file\n"
            )
        );
        assert_eq!(
            render_diff("b", Some("x\r\n"), "y\r\n", Paint(false)),
            "b\n@@ -1 +1 @@\n-x\n+y\n"
        );
    }

    #[test]
    fn size_has_the_largest_unit_that_fits() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_048_575, "1023.9 KiB"),
            (5 << 29, "2.5 GiB"),
            (u64::MAX, "17179869183.9 GiB"),
        ] {
            assert_eq!(format_bytes(bytes), text);
        }
    }
}
