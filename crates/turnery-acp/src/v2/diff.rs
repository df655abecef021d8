//! Diff: a change to a file, as a list of what changed and as a patch in Git's form (V2-14).

use agent_client_protocol_schema::v2::{Diff, DiffChange, DiffFileType, DiffPatch};
use std::{fmt::Write as _, path::Path};

/// Texts longer than this together get no patch: it could be as long. Unit: bytes.
pub(super) const PATCH_LIMIT: usize = 128 << 10;
/// Lines around a change.
const CONTEXT: usize = 3;

/// The change of one file; one without a text from before is new. Of a part of one there is no patch: it
/// would name the wrong lines.
pub(super) fn to_wire(path: &Path, old: Option<&str>, new: &str, is_part: bool) -> Diff {
    let change = match old {
        Some(_) => DiffChange::modify(path),
        None => DiffChange::add(path),
    };
    let size = old.map_or(0, str::len) + new.len();
    let patch = (size <= PATCH_LIMIT && !is_part).then(|| DiffPatch::new(patch(path, old, new)));
    Diff::new(vec![change.file_type(DiffFileType::Text)]).with_patch(patch)
}

/// One `diff --git` section. Paths are absolute and have no prefix.
fn patch(path: &Path, old: Option<&str>, new: &str) -> String {
    let name = quoted(path);
    let mut text = format!("diff --git {name} {name}\n");
    if old.is_none() {
        text.push_str("new file mode 100644\n");
    }
    let hunks = turnery_tools::unified_diff(old.unwrap_or_default(), new, CONTEXT);
    if !hunks.is_empty() {
        let before = if old.is_some() { &name } else { "/dev/null" };
        let _ = write!(text, "--- {before}\n+++ {name}\n");
    }
    for hunk in hunks {
        let _ = write!(text, "{hunk}");
    }
    text
}

/// A path as Git writes it: in quotes, with escapes, if there is anything unusual in it.
fn quoted(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    let bytes = path.as_os_str().as_bytes();
    let usual = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    if bytes.iter().all(usual) {
        return path.display().to_string();
    }
    let mut text = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b'\r' => text.push_str("\\r"),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => {
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text.push('"');
    text
}
