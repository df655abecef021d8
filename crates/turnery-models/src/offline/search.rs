//! Searches for identifiers, text, notes and files, and shows lines and definitions of a file.

use super::{
    command_context::{
        CommandContext, CommandResult, SearchHit, SearchHits, code_block, count, pattern,
    },
    definition::{ANY_NAME, DefinitionMatcher, search_pattern},
};
use serde_json::json;

/// Limits of a search.
pub(super) const SEARCH_SCOPE: &str =
    "Hidden files, binaries and what git ignores are not searched.";
/// Maximum number of lines shown at once.
const MAX_SHOWN: u64 = 200;

/// Lists the definitions of an identifier, and other lines that contain it.
pub(super) fn lookup(written: &str, cx: &mut CommandContext) -> CommandResult {
    let name = written.rsplit([':', '.', '#']).next().unwrap_or(written);
    let escaped = regex::escape(name);
    let definition = DefinitionMatcher::new(&escaped);
    let mut defined = cx.hits(json!({"pattern": search_pattern(&escaped)}), ".")?;
    let is_definition = |hit: &SearchHit| definition.matches(&hit.path, &hit.text);
    defined.hits.retain(is_definition);
    let whole = format!(r"(?:^|[^\w$]){escaped}(?:[^\w$]|$)");
    let mut others = cx.hits(json!({ "pattern": whole }), ".")?;
    others.hits.retain(|hit| !defined.hits.contains(hit));
    if defined.has_no_match() && others.has_no_match() {
        return Ok(format!("No matches for `{name}`. {SEARCH_SCOPE}"));
    }
    let (count, list) = (defined.count(), defined.list(20));
    let text = format!("Definitions of `{name}` that I recognise: {count}\n{list}");
    let (count, list) = (others.count(), others.list(30));
    let others = "Other lines with this name, comments and its namesakes included";
    Ok(format!("{text}\n{others}: {count}\n{list}"))
}

/// Says where `what` was found, with at most `most` lines.
fn describe_hits(found: &SearchHits, what: &str, verb: &str, most: usize) -> CommandResult {
    if found.has_no_match() {
        return Ok(format!("No matches for {what}. {SEARCH_SCOPE}"));
    }
    let list = found.list(most);
    Ok(format!("{what} {verb} on {}:\n{list}", found.count()))
}

/// Lists the lines that contain a text.
pub(super) fn search(text: &str, path: &str, cx: &mut CommandContext) -> CommandResult {
    let found = cx.hits(json!({"pattern": text, "literal": true}), path)?;
    describe_hits(&found, &format!("`{text}`"), "is", 40)
}

/// Lists comments and list items that start with one of the usual markers.
pub(super) fn todos(path: &str, cx: &mut CommandContext) -> CommandResult {
    let comment = r#"(?:^|\s)(?://+!?|#+|/\*+|\*|--|<!--|;+|%+|"""|''')\s*MARK(?:[(:!,.\s]|$)"#;
    let item = r"^\s*(?:[-*+] )?(?:\[[ xX]\] )?MARK(?:\([^)]*\))?:|^\s*[-*+] MARK\s";
    let pattern = format!("{comment}|{item}").replace("MARK", "(?:TODO|FIXME|XXX|HACK)");
    let found = cx.hits(json!({ "pattern": pattern }), path)?;
    describe_hits(&found, "TODO, FIXME, XXX or HACK", "begins a note", 100)
}

/// Lists the files whose path matches a glob, with their total number.
pub(super) fn files(glob: &str, path: &str, cx: &mut CommandContext) -> CommandResult {
    let args = json!({"pattern": glob, "path": path});
    let found = cx.call_or_stop("find_files", args)?;
    let is_path = |line: &&str| !(line.starts_with('[') && line.ends_with(']'));
    let cut = pattern!(r"\n\[the first \d+ of (\d+);").captures(&found);
    let total = cut.and_then(|parts| parts[1].parse().ok());
    let total = total.unwrap_or_else(|| found.lines().filter(is_path).count());
    let (total, list) = (count(total, "file"), code_block(&found));
    let note = "not counting what git ignores or is hidden";
    Ok(format!("`{glob}`: {total}, {note}.\n{list}"))
}

/// Shows the lines from `first` to `last`, up to [`MAX_SHOWN`].
pub(super) fn show(
    path: &str,
    first: u64,
    last: Option<u64>,
    cx: &mut CommandContext,
) -> CommandResult {
    let most = first.max(1).saturating_add(MAX_SHOWN - 1);
    let end = last.unwrap_or(most).clamp(first, most);
    let args = json!({"path": path, "start_line": first, "end_line": end});
    let text = cx.call_or_stop("read_file", args)?;
    let number = |line: &str| line.split_once('\t')?.0.trim().parse().ok();
    let shown: u64 = text.lines().filter_map(number).max().unwrap_or(end);
    let lines = code_block(&text.replace('\t', "  "));
    let which = match last.is_some() && (last == Some(first) || shown == first) {
        true => format!("line {first}"),
        false => format!("lines {first} to {shown}"),
    };
    let most = match last.is_none_or(|last| last > most) && shown == most {
        true => format!(" (I show at most {MAX_SHOWN} lines at once)"),
        false => String::new(),
    };
    Ok(format!("{path}, {which}{most}:\n{lines}"))
}

/// Lists the definitions, headings and sections of a file, or of all files of a folder.
pub(super) fn outline(path: &str, cx: &mut CommandContext) -> CommandResult {
    let others = r"^#{1,6} |^\s*```|^\[.+\]\s*(?:#.*)?$|^\s*(?:unsafe\s+)?impl\b";
    let pattern = format!("{}|{others}", search_pattern(ANY_NAME));
    let mut found = cx.hits(json!({ "pattern": pattern }), path)?;
    let (any, mut is_fenced) = (DefinitionMatcher::new(ANY_NAME), false);
    found.hits.retain(|hit| {
        let (text, ending) = (hit.text.trim(), hit.path.rsplit('.').next());
        is_fenced ^= ending == Some("md") && text.starts_with("```");
        match ending {
            Some("md") => text.starts_with('#') && !is_fenced,
            Some("toml" | "ini" | "cfg") => text.starts_with('['),
            Some("rs") if pattern!(r"^(?:unsafe\s+)?impl\b").is_match(text) => true,
            _ => any.matches(&hit.path, &hit.text),
        }
    });
    let (count, list) = (found.count(), found.list(200));
    let kinds = "definitions, headings or sections";
    Ok(format!("{path}: I recognise {kinds} on {count}.\n{list}"))
}
