//! Encodes a file change as a list of changes and as a Git patch (V2-14).

use agent_client_protocol_schema::v2::{Diff, DiffChange, DiffFileType, DiffPatch};
use std::{fmt::Write as _, path::Path};

/// Combined length of the texts above which the patch is omitted, since it could be as long. Unit: bytes.
pub(super) const PATCH_LIMIT: usize = 128 << 10;
/// Number of context lines around a change.
const CONTEXT_LINES: usize = 3;

/// Encodes the change of one file; without `old`, the file is new. A partial text gets no patch, since the
/// line numbers would be wrong.
pub(super) fn encode_diff(path: &Path, old: Option<&str>, new: &str, is_part: bool) -> Diff {
    let change = match old {
        Some(_) => DiffChange::modify(path),
        None => DiffChange::add(path),
    };
    let size = old.map_or(0, str::len) + new.len();
    let patch =
        (size <= PATCH_LIMIT && !is_part).then(|| DiffPatch::new(git_patch(path, old, new)));
    Diff::new(vec![change.file_type(DiffFileType::Text)]).with_patch(patch)
}

/// Returns one `diff --git` section. Paths are absolute and have no prefix.
fn git_patch(path: &Path, old: Option<&str>, new: &str) -> String {
    let name = git_quote_path(path);
    let mut text = format!("diff --git {name} {name}\n");
    if old.is_none() {
        text.push_str("new file mode 100644\n");
    }
    let hunks = turnery_tools::unified_diff(old.unwrap_or_default(), new, CONTEXT_LINES);
    if !hunks.is_empty() {
        let before = if old.is_some() { &name } else { "/dev/null" };
        let _ = write!(text, "--- {before}\n+++ {name}\n");
    }
    for hunk in hunks {
        let _ = write!(text, "{hunk}");
    }
    text
}

/// Formats a path as Git does: quoted and escaped if it contains unusual characters.
fn git_quote_path(path: &Path) -> String {
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
