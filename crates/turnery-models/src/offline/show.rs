//! Show: the lines of a file, or the files of a folder.

use super::{
    code,
    intent::Files,
    outline,
    output::{count, fenced, list, numbered, paths},
    replay::{Halt, Replay},
    target::Place,
};
use serde_json::json;

const MOST_LINES: usize = 200;

pub(super) fn show(place: &Place, replay: &mut Replay<'_>) -> Result<(), Halt> {
    let (path, text, from) = match place.from {
        Some(from) => {
            let from = from.max(1);
            let to = place.to.unwrap_or(from.saturating_add(20)).max(from);
            let args = json!({"path": place.path, "start_line": from, "end_line": to});
            (place.path.clone(), replay.must("read_file", args)?, from)
        }
        None => {
            let (path, text) = outline::read(&place.path, replay)?;
            (path, text, 1)
        }
    };
    let lines = numbered(&text, from);
    let Some((last, _)) = lines.last().copied() else {
        replay.say(format!("{path} is empty.\n"));
        return Ok(());
    };
    let shown = &lines[..lines.len().min(MOST_LINES)];
    let text: Vec<String> = shown
        .iter()
        .map(|(number, line)| format!("{number:>5}  {line}").trim_end().to_owned())
        .collect();
    replay.say(format!("{path}, lines {} to {last}:\n\n", lines[0].0));
    replay.say(fenced(&text.join("\n"), code::language(&path)));
    if lines.len() > MOST_LINES {
        let next = shown.last().map_or(1, |(number, _)| number + 1);
        replay.say(format!(
            "… and {} more. Go on with: show {path}:{next}-{}\n",
            count(lines.len() - MOST_LINES, "line"),
            next + MOST_LINES - 1
        ));
    }
    Ok(())
}

pub(super) fn files(ask: &Files, replay: &mut Replay<'_>) -> Result<(), Halt> {
    match ask {
        Files::In(path) => {
            let listing = replay.must("list_dir", json!({"path": path, "depth": 2}))?;
            let name = if path == "." { "This folder" } else { path };
            let lines: Vec<&str> = listing.lines().collect();
            if let [only] = lines.as_slice()
                && only.starts_with('[')
            {
                replay.say(format!("{name} is empty.\n"));
                return Ok(());
            }
            replay.say(format!("{name} holds:\n\n"));
            replay.say(fenced(&lines[..lines.len().min(120)].join("\n"), ""));
            if lines.len() > 120 {
                replay.say(format!(
                    "… and {} more.\n",
                    count(lines.len() - 120, "line")
                ));
            }
        }
        Files::Matching(pattern) => {
            let pattern = if pattern.contains('/') {
                pattern.clone()
            } else {
                format!("**/{pattern}")
            };
            let found = replay.must("find_files", json!({ "pattern": pattern }))?;
            let found: Vec<&str> = paths(&found)
                .into_iter()
                .filter(|path| is_file(path))
                .collect();
            if found.is_empty() {
                replay.say(format!("No file here fits `{pattern}`.\n"));
            } else {
                replay.say(format!("{} `{pattern}`:\n", fit(found.len())));
                replay.say(list(&found, 100));
            }
        }
    }
    Ok(())
}

fn fit(number: usize) -> String {
    let verb = if number == 1 { "fits" } else { "fit" };
    format!("{} {verb}", count(number, "file"))
}

/// A path and not a sentence such as `no files`.
fn is_file(line: &str) -> bool {
    !line.contains(' ') || line.contains('/') || line.contains('.') && !line.ends_with('.')
}
