//! Lookup: where a name is defined, what it is, and who uses it.

use super::{
    code,
    intent::Aim,
    output::{Hit, by_path, count, fenced, hits, list, numbered, short},
    replay::{Halt, Replay},
};
use serde_json::json;

const MOST_HITS: usize = 200;

pub(super) fn lookup(word: &str, aim: Aim, replay: &mut Replay<'_>) -> Result<(), Halt> {
    if aim == Aim::Text {
        return text(word, replay);
    }
    let seen = replay.calls(vec![
        (
            "search",
            json!({"pattern": code::definition_of(word), "max_results": 50}),
        ),
        (
            "search",
            json!({"pattern": format!(r"\b{}\b", regex::escape(word)), "max_results": MOST_HITS}),
        ),
    ])?;
    if let Some(refused) = seen.iter().find(|seen| seen.failed) {
        return Err(Halt::Stop(format!(
            "I could not search: {}",
            refused.text.trim()
        )));
    }
    let mut defined: Vec<Hit> = hits(&seen[0].text)
        .into_iter()
        .filter(|hit| code::is_definition(&hit.path, &hit.text, word))
        .collect();
    defined.sort_by_key(|hit| code::rank(&hit.path, &hit.text, word));
    let all = hits(&seen[1].text);
    let used: Vec<Hit> = all
        .into_iter()
        .filter(|hit| {
            !defined
                .iter()
                .any(|other| other.path == hit.path && other.line == hit.line)
        })
        .collect();
    let Some(first) = defined.first().cloned() else {
        return undefined(word, &used, replay);
    };
    let from = first.line.saturating_sub(25).max(1);
    let around = replay.call(
        "read_file",
        json!({"path": first.path, "start_line": from, "end_line": first.line + 25}),
    )?;
    describe(word, &first, &around.text, from, replay);
    let others: Vec<String> = defined[1..]
        .iter()
        .map(|hit| format!("{}:{}  {}", hit.path, hit.line, short(&hit.text, 80)))
        .collect();
    if !others.is_empty() {
        replay.say(format!("\nAlso defined at:\n{}", list(&others, 6)));
    }
    replay.say("\n");
    replay.say(users(&used, if aim == Aim::Usages { 20 } else { 8 }));
    Ok(())
}

fn describe(word: &str, first: &Hit, around: &str, from: usize, replay: &mut Replay<'_>) {
    let kind = code::kind(&first.text, word);
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    replay.say(format!(
        "`{word}` is {article} {kind}, defined at {}:{}.\n\n",
        first.path, first.line
    ));
    let lines = numbered(around, from);
    let found = lines
        .iter()
        .any(|(number, text)| *number == first.line && text.contains(word));
    let signature = if found {
        code::signature(&lines, first.line)
    } else {
        first.text.trim().to_owned()
    };
    replay.say(fenced(&signature, code::language(&first.path)));
    if found {
        let comment = code::comment(&lines, first.line);
        if !comment.is_empty() {
            let quoted: Vec<String> = comment
                .iter()
                .take(14)
                .map(|text| format!("> {text}").trim_end().to_owned())
                .collect();
            replay.say(format!("\nIts comment says:\n\n{}\n", quoted.join("\n")));
        }
    }
}

/// Who uses it: the files, and the first lines of code.
fn users(used: &[Hit], most: usize) -> String {
    let mut code: Vec<Hit> = used
        .iter()
        .filter(|hit| !code::is_comment(&hit.text))
        .cloned()
        .collect();
    code.sort_by_key(|hit| (hit.path.ends_with(".md"), code::is_test(&hit.path)));
    if code.is_empty() {
        return "I found no other use of it.\n".to_owned();
    }
    let groups = by_path(&code);
    let more = if used.len() + 1 >= MOST_HITS {
        " at least"
    } else {
        ""
    };
    let lines: Vec<String> = code
        .iter()
        .map(|hit| format!("{}:{}  {}", hit.path, hit.line, short(&hit.text, 90)))
        .collect();
    format!(
        "Used on{more} {} in {}:\n{}",
        count(code.len(), "line"),
        count(groups.len(), "file"),
        list(&lines, most)
    )
}

fn undefined(word: &str, used: &[Hit], replay: &mut Replay<'_>) -> Result<(), Halt> {
    if !used.is_empty() {
        replay.say(format!(
            "I found no definition of `{word}` here (it may come from a library or be made by a macro).\n\n"
        ));
        replay.say(users(used, 12));
        return Ok(());
    }
    text(word, replay)
}

/// Plain text, whatever its case.
fn text(word: &str, replay: &mut Replay<'_>) -> Result<(), Halt> {
    let args =
        json!({"pattern": word, "literal": true, "ignore_case": true, "max_results": MOST_HITS});
    let found = hits(&replay.must("search", args)?);
    if found.is_empty() {
        replay.say(format!(
            "I found no `{word}` in the files here, whatever its case. Files that git ignores are not searched.\n"
        ));
        return Ok(());
    }
    let groups = by_path(&found);
    replay.say(format!(
        "`{word}` is on {} in {}:\n",
        count(found.len(), "line"),
        count(groups.len(), "file")
    ));
    for (path, members) in groups.iter().take(12) {
        replay.say(format!("\n{path}\n"));
        let lines: Vec<String> = members
            .iter()
            .map(|hit| format!("{}: {}", hit.line, short(&hit.text, 100)))
            .collect();
        replay.say(list(&lines, 6));
    }
    if groups.len() > 12 {
        replay.say(format!(
            "\n… and {} more.\n",
            count(groups.len() - 12, "file")
        ));
    }
    Ok(())
}
