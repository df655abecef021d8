//! Todo: the notes that people left in the code, by file.

use super::{
    output::{Hit, by_path, count, hits, short},
    replay::{Halt, Replay},
    rules::pattern,
};
use serde_json::{Value, json};

pub(super) fn list(path: Option<&str>, replay: &mut Replay<'_>) -> Result<(), Halt> {
    let mut args = json!({"pattern": r"\b(TODO|FIXME|XXX|HACK)\b", "max_results": 300});
    if let (Some(path), Value::Object(args)) = (path, &mut args) {
        args.insert("path".to_owned(), path.into());
    }
    let found: Vec<Hit> = hits(&replay.must("search", args)?)
        .into_iter()
        .filter(|hit| is_note(&hit.text))
        .collect();
    let place = path.map_or("here".to_owned(), |path| format!("in {path}"));
    if found.is_empty() {
        replay.say(format!("There is no TODO, FIXME, XXX or HACK {place}.\n"));
        return Ok(());
    }
    let groups = by_path(&found);
    let kinds: Vec<String> = ["TODO", "FIXME", "XXX", "HACK"]
        .into_iter()
        .filter_map(|kind| {
            let number = found
                .iter()
                .filter(|hit| first(&hit.text) == Some(kind))
                .count();
            (number > 0).then(|| format!("{number} {kind}"))
        })
        .collect();
    replay.say(format!(
        "{} in {} {place}: {}.\n",
        count(found.len(), "note"),
        count(groups.len(), "file"),
        kinds.join(", ")
    ));
    for (file, members) in groups.iter().take(40) {
        let lines: Vec<String> = members
            .iter()
            .map(|hit| format!("{}: {}", hit.line, note(&hit.text)))
            .collect();
        replay.say(format!("\n{file}\n{}", super::output::list(&lines, 15)));
    }
    if groups.len() > 40 {
        replay.say(format!(
            "\n… and {} more.\n",
            count(groups.len() - 40, "file")
        ));
    }
    Ok(())
}

/// A note to people: at the beginning of a comment or of a line. Patterns and texts that only name
/// the marks are none.
fn is_note(text: &str) -> bool {
    let form = pattern!(
        r#"(^|//|\#|/\*|\*|--|<!--|;|%|\[ \]|"{3}|'{3})[!/*#\s-]*(\w+\s+){0,3}(TODO|FIXME|XXX|HACK)(\(|:|\s|$|,|\.|!)"#
    );
    form.is_match(text.trim_start())
}

fn first(text: &str) -> Option<&str> {
    Some(pattern!(r"\b(TODO|FIXME|XXX|HACK)\b").find(text)?.as_str())
}

/// From the mark on: what stands before it is code or the sign of a comment.
fn note(text: &str) -> String {
    let found = pattern!(r"\b(TODO|FIXME|XXX|HACK)\b.*").find(text);
    let note = found.map_or(text, |found| found.as_str());
    short(note.trim_end_matches("*/").trim_end_matches("-->"), 120)
}
