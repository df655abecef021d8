//! Outline: the functions, types and headings of a file or a folder, with their lines.

use super::{
    code,
    output::{by_path, count, hits, list, numbered, paths, short},
    replay::{Halt, Replay},
    rules::pattern,
    target,
};
use serde_json::json;

pub(super) fn outline(path: &str, replay: &mut Replay<'_>) -> Result<(), Halt> {
    if path.ends_with('/') || path == "." || !target::is_path(path) || !has_ending(path) {
        return folder(path.trim_end_matches('/'), replay);
    }
    let (path, text) = read(path, replay)?;
    let lines = numbered(&text, 1);
    let items: Vec<String> = lines
        .iter()
        .filter(|(_, line)| is_item(&path, line))
        .map(|(number, line)| {
            let indent = line.len() - line.trim_start().len();
            let head = line.trim().trim_end_matches(['{', ':']).trim_end();
            format!(
                "{number:>6}  {}{}",
                " ".repeat(indent.min(12)),
                short(head, 100)
            )
        })
        .collect();
    replay.say(format!("{path}, {}", count(lines.len(), "line")));
    if let Some(purpose) = purpose(&lines) {
        replay.say(format!(": {purpose}"));
    }
    replay.say("\n\n");
    if items.is_empty() {
        replay.say("I recognise no functions, types or headings in it.\n");
        return Ok(());
    }
    let shown = items
        .iter()
        .take(150)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join("\n");
    replay.say(super::output::fenced(&shown, ""));
    if items.len() > 150 {
        replay.say(format!("… and {} more.\n", items.len() - 150));
    }
    Ok(())
}

fn has_ending(path: &str) -> bool {
    path.rsplit('/')
        .next()
        .is_some_and(|name| name.contains('.') || name.starts_with(char::is_uppercase))
}

/// Read a file; when only its name was given, find it first.
pub(super) fn read(path: &str, replay: &mut Replay<'_>) -> Result<(String, String), Halt> {
    let seen = replay.call("read_file", json!({ "path": path }))?;
    if !seen.failed {
        return Ok((path.to_owned(), seen.text));
    }
    if seen.denied() || seen.text.contains("outside the folders") || !replay.has("find_files") {
        return Err(Halt::Stop(format!(
            "I could not read {path}: {}",
            seen.text.trim()
        )));
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = if name.contains('.') { "" } else { "{,.*}" };
    let found = replay.must(
        "find_files",
        json!({"pattern": format!("**/{name}{ending}")}),
    )?;
    let found = paths(&found);
    let ends: Vec<&str> = found
        .iter()
        .copied()
        .filter(|other| {
            let last = other.rsplit('/').next().unwrap_or(other);
            last == name || (!ending.is_empty() && last.split('.').next() == Some(name))
        })
        .collect();
    // Of several, the one at the top is meant.
    let top: Vec<&str> = ends
        .iter()
        .copied()
        .filter(|other| !other.contains('/'))
        .collect();
    let ends = if top.len() == 1 { top } else { ends };
    match ends.as_slice() {
        [] => Err(Halt::Stop(format!("There is no file {path} here."))),
        [only] => {
            let text = replay.must("read_file", json!({ "path": only }))?;
            Ok(((*only).to_owned(), text))
        }
        several => Err(Halt::Stop(format!(
            "There is no file {path}, but these have that name. Which one?\n{}",
            list(several, 12)
        ))),
    }
}

fn is_item(path: &str, line: &str) -> bool {
    if path.ends_with(".md") {
        return pattern!(r"^#{1,6}\s+\S").is_match(line);
    }
    if path.ends_with(".toml") || path.ends_with(".ini") {
        return pattern!(r"^\[.+\]").is_match(line);
    }
    let definition = pattern!(code::any_definition()).is_match(line);
    let method = pattern!(
        r"^\s+(public|private|protected|static|async|override|final|get|set)\s+[\w<>\[\], ]+\("
    )
    .is_match(line);
    let arrow = pattern!(r"^(export\s+)?(const|let)\s+\w+\s*=\s*(async\s*)?(\(|function|\w+\s*=>)")
        .is_match(line);
    let value = pattern!(r"^\s*(pub(\([^)]*\))?\s+)?(const|static|type)\s+[A-Z]\w*").is_match(line);
    let c = code::is_c(path)
        && pattern!(
            r"^[A-Za-z_][\w\s*&:<>,]*\s[*&]*[\w:~]+\([^;]*\)\s*(const\s*)?(\{.*)?$|^#\s*define\s|^typedef\b|^(static|extern|const)\s"
        )
        .is_match(line);
    let js = pattern!(r"\.(js|mjs|cjs|jsx|ts|tsx)$").is_match(path)
        && pattern!(r"^\s+(#?\w+)\([^)]*\)\s*(:\s*[\w<>\[\]| ]+)?\s*\{").is_match(line)
        && !pattern!(r"^\s+(if|for|while|switch|catch|return|function|with)\b").is_match(line);
    definition || method || arrow || value || c || js
}

/// The first sentence of a file about itself.
fn purpose(lines: &[(usize, &str)]) -> Option<String> {
    let (_, line) = lines.iter().find(|(_, line)| !line.trim().is_empty())?;
    let form = pattern!(r#"^(//!|///|//|/\*\*?|"""|#+ )\s*(\w.*)$"#);
    let text = form.captures(line.trim())?.get(2)?.as_str();
    Some(short(
        text.trim_end_matches("*/").trim_end_matches(r#"""""#),
        160,
    ))
}

fn folder(path: &str, replay: &mut Replay<'_>) -> Result<(), Halt> {
    let path = if path.is_empty() { "." } else { path };
    let args = json!({"pattern": code::any_definition(), "path": path, "max_results": 400});
    let found = hits(&replay.must("search", args)?);
    if found.is_empty() {
        replay.say(format!("I recognise no functions or types in {path}.\n"));
        return Ok(());
    }
    let groups = by_path(&found);
    replay.say(format!(
        "{} in {} of {path}:\n",
        count(found.len(), "definition"),
        count(groups.len(), "file")
    ));
    for (file, members) in groups.iter().take(25) {
        let lines: Vec<String> = members
            .iter()
            .map(|hit| {
                format!(
                    "{}: {}",
                    hit.line,
                    short(hit.text.trim().trim_end_matches('{'), 90)
                )
            })
            .collect();
        replay.say(format!("\n{file}\n{}", list(&lines, 10)));
    }
    if groups.len() > 25 {
        replay.say(format!(
            "\n… and {} more.\n",
            count(groups.len() - 25, "file")
        ));
    }
    Ok(())
}
