//! Patch: a diff from the message is applied, one hunk after the other, and what does not fit is told.

use super::{
    diff::{self, FileDiff},
    output::{count, list, short},
    replay::{Halt, Replay},
};
use serde_json::{Value, json};

const MOST_HUNKS: usize = 40;

pub(super) fn apply(text: &str, replay: &mut Replay<'_>) -> Result<(), Halt> {
    let files = diff::read(text);
    let hunks: usize = files.iter().map(|file| file.hunks.len()).sum();
    if hunks == 0 {
        return Err(Halt::Stop(
            "I see the beginning of a diff, but no change in it.".to_owned(),
        ));
    }
    if hunks > MOST_HUNKS {
        return Err(Halt::Stop(format!(
            "This diff has {hunks} places; I apply at most {MOST_HUNKS}. `git apply` takes it whole."
        )));
    }
    replay.say(format!(
        "I apply {} to {}.\n",
        count(hunks, "change"),
        count(files.len(), "file")
    ));
    let mut applied = 0;
    let mut faults: Vec<String> = Vec::new();
    'files: for file in &files {
        for step in steps(file) {
            let (place, tool, args) = match step {
                Ok(step) => step,
                Err(fault) => {
                    faults.push(fault);
                    continue;
                }
            };
            let seen = replay.call(tool, args)?;
            if seen.denied() {
                faults.push(format!("{place}, where I stopped: {}", seen.why()));
                break 'files;
            }
            if seen.failed {
                faults.push(format!("{place}: {}", short(&seen.text, 200)));
            } else {
                applied += 1;
            }
        }
    }
    replay.say(if faults.is_empty() {
        format!("The patch is applied: {}.\n", count(applied, "change"))
    } else {
        format!(
            "{applied} of {} applied. Not applied:\n{}",
            count(hunks, "change"),
            list(&faults, 20)
        )
    });
    Ok(())
}

type Step = (String, &'static str, Value);

/// The calls for one file, in order, or why there is none for a hunk.
fn steps(file: &FileDiff) -> Vec<Result<Step, String>> {
    let (old, new) = match (&file.old, &file.new) {
        (None, None) => {
            return vec![Err(
                "a change from /dev/null to /dev/null: names no file".to_owned()
            )];
        }
        (Some(old), None) => {
            return vec![Err(format!(
                "{old}: the patch removes this file, and I have no tool for that. Use: git rm {old}"
            ))];
        }
        (None, Some(new)) => {
            let lines: Vec<&str> = file
                .hunks
                .iter()
                .flat_map(|hunk| &hunk.new)
                .map(String::as_str)
                .collect();
            let content = lines.join("\n") + "\n";
            return vec![Ok((
                new.clone(),
                "write_file",
                json!({"path": new, "content": content}),
            ))];
        }
        (Some(old), Some(new)) => (old, new),
    };
    if old != new {
        return vec![Err(format!(
            "{old}: the patch renames this file to {new}; rename it first: git mv {old} {new}"
        ))];
    }
    file.hunks
        .iter()
        .map(|hunk| {
            let place = format!("{new}:{}", hunk.line);
            if hunk.old.is_empty() {
                return Err(format!(
                    "{place}: has no line of context, so its place cannot be found"
                ));
            }
            let (before, after) = (hunk.old.join("\n"), hunk.new.join("\n"));
            let args = if hunk.new.is_empty() {
                json!({"path": new, "old_text": format!("{before}\n"), "new_text": ""})
            } else {
                json!({"path": new, "old_text": before, "new_text": after})
            };
            Ok((place, "edit_file", args))
        })
        .collect()
}
