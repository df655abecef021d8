//! Edits files: replaces text, applies unified diffs. A failed call stops an edit, which is then reported.

use super::{
    command_context::{CommandContext, CommandResult, code_block, count, list, pattern, stop_with},
    search::SEARCH_SCOPE,
};
use serde_json::{Value, json};
use std::{iter::Peekable, str::Lines};

/// Maximum number of files in which text is replaced, each by one tool call.
const MAX_FILES: usize = 50;
/// Maximum number of hunks of a diff; each is a tool call, and a new file takes two.
const MAX_HUNKS: usize = 30;

/// Replaces a text in all files that contain it.
pub(super) fn replace(old: &str, new: &str, path: &str, cx: &mut CommandContext) -> CommandResult {
    let found = cx.hits(json!({"pattern": old, "literal": true}), path)?;
    let refused = |why: String| stop_with(format!("Nothing was changed: {why}"));
    if found.has_no_match() {
        return refused(format!("no matches for `{old}`. {SEARCH_SCOPE}"));
    }
    let files: Vec<String> = found.files().into_iter().map(str::to_owned).collect();
    if files.len() > MAX_FILES || !found.notices.is_empty() {
        let (count, list) = (found.count(), found.list(0));
        let limit = format!("I change all places or none, in at most {MAX_FILES} files");
        return refused(format!("`{old}` is on {count}, and {limit}.\n{list}"));
    }
    let (mut places, mut diff) = (0, String::new());
    for (done, file) in files.iter().enumerate() {
        let args = json!({"path": file, "old_text": old, "new_text": new, "replace_all": true});
        let edited = cx.call("edit_file", args)?.or_else(|error| {
            let changed = list(files[..done].iter().cloned(), MAX_FILES);
            stop_with(format!(
                "Stopped at {file}: {error}\nChanged before: {done}\n{changed}"
            ))
        })?;
        let (head, hunks) = edited.split_once('\n').unwrap_or((&edited, ""));
        let number = pattern!(r" in (\d+) places:$").captures(head);
        places += number.and_then(|parts| parts[1].parse().ok()).unwrap_or(1);
        diff += &format!("--- {file}\n+++ {file}\n{}\n", hunks.trim_end());
    }
    let (places, files) = (count(places, "place"), count(files.len(), "file"));
    let diff = code_block(&diff);
    let note =
        "This replaced text, inside longer words too; whether the code still works is not checked.";
    Ok(format!(
        "Replaced `{old}` with `{new}` in {places} in {files}.\n{diff}{note} {SEARCH_SCOPE}"
    ))
}

/// A hunk as a tool call: the path, the tool and its arguments.
type HunkCall = (String, &'static str, Value);

/// Applies a unified diff, hunk by hunk.
pub(super) fn apply(diff: &str, cx: &mut CommandContext) -> CommandResult {
    let refused = |why| stop_with(format!("Nothing was changed: {why}. Try `git apply`."));
    let hunks = parse_diff(diff).or_else(refused)?;
    let all = count(hunks.len(), "hunk");
    for (done, (path, tool, args)) in hunks.iter().enumerate() {
        let stopped = format!("Applied {done} of {all}, then stopped at {path}:");
        if *tool == "write_file" && cx.call("read_file", json!({ "path": path }))?.is_ok() {
            return stop_with(format!("{stopped} the file to be made is there already."));
        }
        if let Err(error) = cx.call(tool, args.clone())? {
            return stop_with(format!("{stopped} {error}"));
        }
    }
    let paths = hunks.into_iter().map(|(path, ..)| path);
    Ok(format!("Applied {all}:\n{}", list(paths, MAX_HUNKS)))
}

fn parse_diff(diff: &str) -> Result<Vec<HunkCall>, String> {
    let (mut hunks, mut old, mut new) = (Vec::new(), "", "");
    let mut lines = diff.lines().peekable();
    while let Some(line) = lines.next() {
        let range = pattern!(r"^@@ -\d+(?:,(\d{1,9}))? \+\d+(?:,(\d{1,9}))? @@").captures(line);
        let next = lines.peek().and_then(|next| next.strip_prefix("+++ "));
        let other = pattern!(
            r"^(?:@@|index 0+\.\.e69de29|new file mode 100755|(?:rename|copy|old mode|deleted file|GIT binary|Binary) )"
        );
        if let (Some(from), Some(to)) = (line.strip_prefix("--- "), next) {
            (old, new) = (from, to);
        } else if let Some(parts) = range {
            let size = |at| parts.get(at).map_or(Some(1), |it| it.as_str().parse().ok());
            let sizes = size(1).zip(size(2));
            let texts = sizes.and_then(|(old, new)| read_hunk_texts(&mut lines, [old, new]));
            let [before, after] = texts.ok_or(format!("the hunk `{line}` is not whole"))?;
            hunks.push(build_hunk(old, new, &before, &after)?);
        } else if other.is_match(line) {
            return Err(format!("I cannot carry out `{line}`"));
        }
    }
    match hunks.len() {
        0..=MAX_HUNKS => Ok(hunks),
        number => Err(format!("{number} hunks are more than {MAX_HUNKS}")),
    }
}

/// Returns the old and the new text of a hunk, each line with its line feed. `left`: lines of each.
fn read_hunk_texts(lines: &mut Peekable<Lines<'_>>, mut left: [usize; 2]) -> Option<[String; 2]> {
    let mut texts = [String::new(), String::new()];
    while left != [0, 0] {
        let line = lines.next()?;
        // Editors strip the blank from an empty context line.
        let (mark, text) = line.split_at_checked(1).unwrap_or((" ", ""));
        for (side, own) in [(0, "-"), (1, "+")] {
            if mark == " " || mark == own {
                left[side] = left[side].checked_sub(1)?;
                texts[side] += &format!("{text}\n");
            }
        }
        if !matches!(mark, " " | "-" | "+" | "\\") {
            return None;
        }
    }
    if lines.next_if(|line| line.starts_with('\\')).is_some() {
        texts[1].pop();
    }
    Some(texts)
}

fn build_hunk(old: &str, new: &str, before: &str, after: &str) -> Result<HunkCall, String> {
    let [old, new] = [(old, "a/"), (new, "b/")].map(|(path, prefix)| {
        let path = path.split('\t').next().unwrap_or(path).trim();
        path.strip_prefix(prefix).unwrap_or(path)
    });
    let path = new.to_owned();
    if old == "/dev/null" && new != old {
        let args = json!({"path": new, "content": after});
        return Ok((path, "write_file", args));
    }
    if old != new || old.is_empty() || old == "/dev/null" {
        return Err(format!("it removes or moves {old}"));
    }
    if before.is_empty() {
        return Err(format!("a hunk of {new} has no context"));
    }
    // Without its last line feed a text also matches at the end of a file.
    let cut = before.len() - usize::from(!after.is_empty());
    let after = after.strip_suffix('\n').unwrap_or(after);
    let args = json!({"path": new, "old_text": &before[..cut], "new_text": after});
    Ok((path, "edit_file", args))
}
