//! Replace: one text for another, file by file, each change shown and asked about by itself.

use super::{
    output::{Hit, by_path, count, hits, list, short},
    replay::{Halt, Replay},
    rules::pattern,
};
use serde_json::{Value, json};

const MOST_FILES: usize = 30;

pub(super) fn replace(
    old: &str,
    new: &str,
    path: Option<&str>,
    replay: &mut Replay<'_>,
) -> Result<(), Halt> {
    if old.contains('\n') {
        return Err(Halt::Stop(
            "I replace text within a line only. For more, paste a diff: I can apply it.".to_owned(),
        ));
    }
    let place = path.map(|path| format!(" in {path}")).unwrap_or_default();
    let steps = [
        format!("Find `{old}`{place}"),
        format!("Replace it with `{new}`"),
        "Sum up".to_owned(),
    ];
    replay.plan(&steps, 0)?;
    let mut args = json!({"pattern": old, "literal": true, "max_results": 500});
    if let (Some(path), Value::Object(args)) = (path, &mut args) {
        args.insert("path".to_owned(), path.into());
    }
    let found = hits(&replay.must("search", args)?);
    if found.is_empty() {
        replay.say(format!(
            "I found no `{old}`{place}, so I changed nothing.\n"
        ));
        return Ok(());
    }
    let whole = WholeWord::new(old);
    let mut left: Vec<String> = Vec::new();
    let mut work: Vec<(&str, Vec<(String, String)>)> = Vec::new();
    for (file, lines) in by_path(&found) {
        let edits = edits(old, new, &lines, &whole, &mut left);
        if !edits.is_empty() {
            work.push((file, edits));
        }
    }
    let later = work.split_off(work.len().min(MOST_FILES));
    replay.plan(&steps, 1)?;
    replay.say(format!(
        "`{old}` is on {} in {}. I change one file after the other.\n",
        count(found.len(), "line"),
        count(by_path(&found).len(), "file")
    ));
    let mut changed = Vec::new();
    let mut failed = Vec::new();
    'files: for (file, edits) in &work {
        for (from, to) in edits {
            let seen = replay.call(
                "edit_file",
                json!({"path": file, "old_text": from, "new_text": to, "replace_all": true}),
            )?;
            if seen.denied() {
                failed.push(format!("{file}, where I stopped: {}", seen.why()));
                break 'files;
            }
            if seen.failed {
                failed.push(format!("{file}: {}", short(&seen.text, 200)));
            } else if !changed.contains(file) {
                changed.push(*file);
            }
        }
    }
    if failed.is_empty() {
        replay.plan(&steps, 3)?;
    }
    replay.say(match changed.len() {
        0 => "No file was changed.\n".to_owned(),
        number => format!(
            "`{old}` became `{new}` in {}:\n{}",
            count(number, "file"),
            list(&changed, MOST_FILES)
        ),
    });
    for (title, lines) in [
        ("Not changed:", &failed),
        ("Left alone, because it is part of a longer word:", &left),
    ] {
        if !lines.is_empty() {
            replay.say(format!("\n{title}\n{}", list(lines, 12)));
        }
    }
    if !later.is_empty() {
        replay.say(format!(
            "\n{} more have it. Ask again to go on with them.\n",
            count(later.len(), "file")
        ));
    }
    Ok(())
}

/// Where a word stands by itself: `Loop`, but not the beginning of `LoopSpec`.
struct WholeWord {
    word: String,
    is_word: bool,
}

impl WholeWord {
    fn new(word: &str) -> Self {
        Self {
            word: word.to_owned(),
            is_word: pattern!(r"^\w+$").is_match(word),
        }
    }

    /// The line with each whole occurrence replaced, and how many were and were not.
    fn replaced(&self, line: &str, new: &str) -> (String, usize, usize) {
        let part = |c: char| c.is_alphanumeric() || c == '_';
        let (mut text, mut whole, mut within, mut at) = (String::new(), 0, 0, 0);
        for (start, _) in line.match_indices(&self.word) {
            let end = start + self.word.len();
            let bound = !line[..start].ends_with(part) && !line[end..].starts_with(part);
            text.push_str(&line[at..start]);
            if bound || !self.is_word {
                text.push_str(new);
                whole += 1;
            } else {
                text.push_str(&self.word);
                within += 1;
            }
            at = end;
        }
        text.push_str(&line[at..]);
        (text, whole, within)
    }

    /// Whether a line, taken as a part of other lines, could match inside a longer word.
    fn is_at_the_edge(&self, line: &str) -> bool {
        self.is_word && (line.starts_with(&self.word) || line.ends_with(&self.word))
    }
}

/// The edits of one file: one for all when every occurrence is a whole word, or else line by line.
fn edits(
    old: &str,
    new: &str,
    lines: &[&Hit],
    word: &WholeWord,
    left: &mut Vec<String>,
) -> Vec<(String, String)> {
    let done: Vec<(&Hit, String, usize, usize)> = lines
        .iter()
        .map(|hit| {
            let (text, whole, within) = word.replaced(hit.text.trim(), new);
            (*hit, text, whole, within)
        })
        .collect();
    if done.iter().all(|(_, _, _, within)| *within == 0) {
        return vec![(old.to_owned(), new.to_owned())];
    }
    let mut edits: Vec<(String, String)> = Vec::new();
    for (hit, text, whole, within) in done {
        let line = hit.text.trim();
        if whole > 0 && !word.is_at_the_edge(line) {
            if !edits.iter().any(|(from, _)| from == line) {
                edits.push((line.to_owned(), text));
            }
        } else if whole > 0 || within > 0 {
            left.push(format!("{}:{}  {}", hit.path, hit.line, short(line, 90)));
        }
    }
    edits
}
