//! Formats text for models and users: bounded lines, sizes, and diffs.

use similar::{ChangeTag, TextDiff};
use std::{borrow::Cow, fmt::Write as _, time::Duration};

/// Maximum size of a diff shown to the model. Unit: bytes.
const MAX_DIFF_BYTES: usize = 4 * 1024;

/// Cuts a line that is longer than `max_bytes` and states how much is missing.
pub(crate) fn truncate_line(line: &str, max_bytes: usize) -> Cow<'_, str> {
    if line.len() <= max_bytes {
        return Cow::Borrowed(line);
    }
    let kept = &line[..line.floor_char_boundary(max_bytes)];
    Cow::Owned(format!("{kept} [{} more bytes]", line.len() - kept.len()))
}

/// Formats a size: `17 B`, `1.2 KiB`, `3.4 MiB`.
pub(crate) fn format_size(bytes: u64) -> String {
    let tenths = |unit: u64| {
        let tenths = bytes.saturating_mul(10) / unit;
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", tenths(1024)),
        _ => format!("{} MiB", tenths(1024 * 1024)),
    }
}

/// Returns the number, from 1, of the first line in which two texts differ.
pub(crate) fn first_changed_line(old: &str, new: &str) -> u32 {
    let same = old
        .bytes()
        .zip(new.bytes())
        .take_while(|(old, new)| old == new);
    let lines = same.filter(|(byte, _)| *byte == b'\n').count();
    u32::try_from(lines).unwrap_or(u32::MAX).saturating_add(1)
}

/// Time limit of a diff; after that the remaining text is shown as replaced.
const DIFF_TIMEOUT: Duration = Duration::from_secs(1);

/// One hunk of a unified diff.
#[derive(Debug, PartialEq, Eq)]
pub struct DiffHunk<'a> {
    /// `@@ -1,3 +1,3 @@`.
    pub header: String,
    /// Change of each line, and the line with its `\n`, which the last line of a text may lack.
    pub lines: Vec<(ChangeTag, &'a str)>,
}

/// Marker after a line without `\n`, as in Git.
pub const NO_NEWLINE_MARKER: &str = "\\ No newline at end of file\n";

/// Returns a change as a unified diff with `context` lines around each hunk, in bounded time. Lines end in
/// `\n`, as in Git: a `\r` is part of its line.
#[must_use]
pub fn unified_diff<'a>(old: &'a str, new: &'a str, context: usize) -> Vec<DiffHunk<'a>> {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let diff = TextDiff::configure()
        .timeout(DIFF_TIMEOUT)
        .diff_slices(&old, &new);
    let line = |tag, old_index: Option<usize>, new_index: Option<usize>| {
        let of_old = old_index.and_then(|index| old.get(index));
        let line = of_old.or_else(|| new.get(new_index?))?;
        Some((tag, *line))
    };
    let mut hunks = Vec::new();
    for hunk in diff.unified_diff().context_radius(context).iter_hunks() {
        let changes = hunk.iter_changes();
        hunks.push(DiffHunk {
            header: hunk.header().to_string(),
            lines: changes
                .filter_map(|it| line(it.tag(), it.old_index(), it.new_index()))
                .collect(),
        });
    }
    hunks
}

impl std::fmt::Display for DiffHunk<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(out, "{}", self.header)?;
        for (tag, line) in &self.lines {
            write!(out, "{tag}{line}")?;
            if !line.ends_with('\n') {
                write!(out, "\n{NO_NEWLINE_MARKER}")?;
            }
        }
        Ok(())
    }
}

/// Returns the hunks of a unified diff, cut if they are too long.
pub(crate) fn render_diff(old: &str, new: &str) -> String {
    let mut shown = String::new();
    for hunk in unified_diff(old, new, 2) {
        // Writing to a string cannot fail.
        let _ = write!(shown, "{hunk}");
        if shown.len() > MAX_DIFF_BYTES {
            shown.truncate(shown.floor_char_boundary(MAX_DIFF_BYTES));
            shown += "\n[more changes not shown]";
            break;
        }
    }
    shown
}
