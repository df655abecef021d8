//! Text for models and people: bounded lines, sizes, and what changed between two texts.

use similar::TextDiff;
use std::{borrow::Cow, fmt::Write as _, time::Duration};

/// What a model is shown of a change.
const MOST_DIFF: usize = 4 * 1024;

/// The line, cut when it is longer than `most` bytes, with a word on how much is missing.
pub(crate) fn cut(line: &str, most: usize) -> Cow<'_, str> {
    if line.len() <= most {
        return Cow::Borrowed(line);
    }
    let kept = &line[..line.floor_char_boundary(most)];
    Cow::Owned(format!("{kept} [{} more bytes]", line.len() - kept.len()))
}

/// `17 B`, `1.2 KiB`, `3.4 MiB`.
pub(crate) fn size(bytes: u64) -> String {
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

/// The first line, from 1, in which two texts differ.
pub(crate) fn first_difference(old: &str, new: &str) -> u32 {
    let same = old
        .bytes()
        .zip(new.bytes())
        .take_while(|(old, new)| old == new);
    let lines = same.filter(|(byte, _)| *byte == b'\n').count();
    u32::try_from(lines).unwrap_or(u32::MAX).saturating_add(1)
}

/// The hunks of a unified diff, cut when there is much.
pub(crate) fn hunks(old: &str, new: &str) -> String {
    let diff = TextDiff::configure()
        .timeout(Duration::from_secs(1))
        .diff_lines(old, new);
    let mut shown = String::new();
    for hunk in diff.unified_diff().context_radius(2).iter_hunks() {
        // Writing to a string cannot fail.
        let _ = write!(shown, "{hunk}");
        if shown.len() > MOST_DIFF {
            shown.truncate(shown.floor_char_boundary(MOST_DIFF));
            shown += "\n[more changes not shown]";
            break;
        }
    }
    shown
}
