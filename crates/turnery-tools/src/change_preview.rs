//! Shows a change to a file to the user: whole while the file is small, else the lines around the change, so
//! that changing a word in a large file makes neither a large question nor a large record (TR-9).

use std::path::Path;
use turnery_engine::{Artifact, Content};

/// Maximum size of a shown change, before and after together. Unit: bytes.
pub(crate) const MAX_PREVIEW_BYTES: usize = 256 << 10;
/// Number of lines shown around a change.
const CONTEXT_LINES: usize = 3;

/// Returns the change of a text from `old` to `new`; `old` is `None` for a new file.
pub(crate) fn render_change(path: &Path, old: Option<&str>, new: &str) -> Artifact {
    let size = |old: &str, new: &str| old.len() + new.len();
    let diff = |old: Option<&str>, new: &str, from_line| Artifact::Diff {
        path: path.to_owned(),
        old: old.map(str::to_owned),
        new: new.to_owned(),
        from_line,
    };
    let before = old.unwrap_or_default();
    if size(before, new) <= MAX_PREVIEW_BYTES {
        return diff(old, new, None);
    }
    if old.is_some() {
        let (from_line, before, after) = changed_part(before, new);
        if size(before, after) <= MAX_PREVIEW_BYTES {
            return diff(Some(before), after, Some(from_line));
        }
    }
    Artifact::Content(Content::text(match old {
        Some(old) => format!(
            "The change is too large to be shown: {} bytes before, {} bytes after.",
            old.len(),
            new.len()
        ),
        None => format!(
            "The new file is too large to be shown: {} bytes.",
            new.len()
        ),
    }))
}

/// Returns the number of the first line shown, and the lines of both texts that differ with some around them.
fn changed_part<'t>(old: &'t str, new: &'t str) -> (u32, &'t str, &'t str) {
    let mut ahead = Vec::with_capacity(CONTEXT_LINES + 1);
    let (mut at, mut line) = (0, 1);
    for (before, after) in old.split_inclusive('\n').zip(new.split_inclusive('\n')) {
        if before != after {
            break;
        }
        ahead.push((at, line));
        if ahead.len() > CONTEXT_LINES {
            ahead.remove(0);
        }
        at += before.len();
        line += 1;
    }
    let (start, from_line) = ahead.first().copied().unwrap_or((at, line));
    let (old, new) = (&old[start..], &new[start..]);
    // The common prefix must not overlap the common suffix.
    let most = old.len().min(new.len()) - (at - start);
    let mut same = 0;
    let mut behind = Vec::new();
    let ends = |text: &'t str| text.split_inclusive('\n').rev();
    for (before, after) in ends(old).zip(ends(new)) {
        if before != after || same + before.len() > most {
            break;
        }
        same += before.len();
        behind.push(before.len());
    }
    let kept: usize = behind.iter().rev().take(CONTEXT_LINES).sum();
    let cut = same - kept;
    (from_line, &old[..old.len() - cut], &new[..new.len() - cut])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbered_lines(lines: u32) -> String {
        (1..=lines).map(|n| format!("line {n}\n")).collect()
    }

    /// Changes a word in a file of 3 MiB.
    // proves: TR-9, THEME-9, G-14
    #[test]
    fn small_change_in_large_file_shows_only_its_lines() {
        let old = numbered_lines(300_000);
        let new = old.replacen("line 150000\n", "LINE 150000\n", 1);
        let Artifact::Diff {
            old: Some(before),
            new: after,
            from_line,
            ..
        } = render_change(Path::new("/w/a"), Some(&old), &new)
        else {
            panic!("no diff");
        };
        let around = |word: &str| {
            format!(
                "line 149997\nline 149998\nline 149999\n{word} 150000\nline 150001\nline 150002\nline 150003\n"
            )
        };
        assert_eq!((before, after), (around("line"), around("LINE")));
        assert_eq!(from_line, Some(149_997));
    }

    // proves: TR-9
    #[test]
    fn oversized_change_is_summarised() {
        let large = "x".repeat(MAX_PREVIEW_BYTES);
        for (old, expected) in [
            (
                Some("y\n"),
                "The change is too large to be shown: 2 bytes before, 262145 bytes after.",
            ),
            (None, "The new file is too large to be shown: 262145 bytes."),
        ] {
            let told = render_change(Path::new("/w/a"), old, &format!("{large}z"));
            assert_eq!(told, Artifact::Content(Content::text(expected)));
        }
    }

    #[test]
    fn small_file_is_shown_whole() {
        let whole = Artifact::Diff {
            path: "/w/a".into(),
            old: Some("a\nb\n".to_owned()),
            new: "a\nc\n".to_owned(),
            from_line: None,
        };
        assert_eq!(
            render_change(Path::new("/w/a"), Some("a\nb\n"), "a\nc\n"),
            whole
        );
    }

    proptest! {
        /// Both parts start at the same line, and the text around them is the same.
        #[test]
        fn changed_part_omits_common_prefix_and_suffix(old in "([ab]\n){0,14}[ab]?", new in "([ab]\n){0,14}[ab]?") {
            let (from_line, before, after) = changed_part(&old, &new);
            let start: usize = old.split_inclusive('\n').take(from_line as usize - 1).map(str::len).sum();
            prop_assert_eq!(&old[..start], &new[..start]);
            prop_assert!(old[start..].starts_with(before) && new[start..].starts_with(after));
            prop_assert_eq!(&old[start + before.len()..], &new[start + after.len()..]);
        }
    }
}
