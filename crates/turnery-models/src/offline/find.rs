//! Finds and shows: names, text, notes, files, the lines and definitions of a file.

use super::{
    conversation::{Answer, Conversation, Hits, Interrupt, count, fenced, pattern},
    definition::{ANY, Definition, search_pattern},
};
use serde_json::{Value, json};

/// Where a search does not look.
pub(super) const SCOPE: &str = "Hidden files, binaries and what git ignores are not searched.";
/// Lines that are shown at once.
const MAX_SHOWN: u64 = 200;

/// Runs the search tool with as many results as it gives.
pub(super) fn hits(mut args: Value, path: &str, cx: &mut Conversation) -> Result<Hits, Interrupt> {
    args["max_results"] = 1000.into();
    args["path"] = path.into();
    Ok(Hits::parse(&cx.must("search", args)?))
}

/// Where a name is defined, and the other lines that have it.
pub(super) fn lookup(written: &str, cx: &mut Conversation) -> Answer {
    let name = written.rsplit([':', '.', '#']).next().unwrap_or(written);
    let escaped = regex::escape(name);
    let definition = Definition::of(&escaped);
    let mut defined = hits(json!({"pattern": search_pattern(&escaped)}), ".", cx)?;
    defined
        .hits
        .retain(|hit| definition.matches(&hit.path, &hit.text));
    let whole = format!(r"(?:^|[^\w$]){escaped}(?:[^\w$]|$)");
    let mut others = hits(json!({ "pattern": whole }), ".", cx)?;
    others.hits.retain(|hit| !defined.hits.contains(hit));
    if defined.is_none() && others.is_none() {
        return Ok(format!("No matches for `{name}`. {SCOPE}"));
    }
    let (count, list) = (defined.count(), defined.list(20));
    let text = format!("Definitions of `{name}` that I recognise: {count}\n{list}");
    let (count, list) = (others.count(), others.list(30));
    let others = "Other lines with this name, comments and its namesakes included";
    Ok(format!("{text}\n{others}: {count}\n{list}"))
}

/// The lines with a text.
pub(super) fn search(text: &str, path: &str, cx: &mut Conversation) -> Answer {
    let found = hits(json!({"pattern": text, "literal": true}), path, cx)?;
    if found.is_none() {
        return Ok(format!("No matches for `{text}`. {SCOPE}"));
    }
    let (count, list) = (found.count(), found.list(40));
    Ok(format!("`{text}` is on {count}:\n{list}"))
}

/// Comments and list items that begin with one of the usual marks.
pub(super) fn todos(path: &str, cx: &mut Conversation) -> Answer {
    let comment = r#"(?:^|\s)(?://+!?|#+|/\*+|\*|--|<!--|;+|%+|"""|''')\s*MARK(?:[(:!,.\s]|$)"#;
    let item = r"^\s*(?:[-*+] )?(?:\[[ xX]\] )?MARK(?:\([^)]*\))?:|^\s*[-*+] MARK\s";
    let pattern = format!("{comment}|{item}").replace("MARK", "(?:TODO|FIXME|XXX|HACK)");
    let found = hits(json!({ "pattern": pattern }), path, cx)?;
    if found.is_none() {
        return Ok(format!("No matches for TODO, FIXME, XXX or HACK. {SCOPE}"));
    }
    let (count, lines) = (found.count(), found.list(100));
    let marks = "TODO, FIXME, XXX or HACK";
    Ok(format!("{marks} begins a note on {count}:\n{lines}"))
}

/// The files whose path matches a glob, counted whole.
pub(super) fn files(glob: &str, path: &str, cx: &mut Conversation) -> Answer {
    let args = json!({"pattern": glob, "path": path});
    let found = cx.must("find_files", args)?;
    let is_path = |line: &&str| !(line.starts_with('[') && line.ends_with(']'));
    let cut = pattern!(r"\n\[the first \d+ of (\d+);").captures(&found);
    let total = cut.and_then(|parts| parts[1].parse().ok());
    let total = total.unwrap_or_else(|| found.lines().filter(is_path).count());
    let (total, list) = (count(total, "file"), fenced(&found));
    let note = "not counting what git ignores or is hidden";
    Ok(format!("`{glob}`: {total}, {note}.\n{list}"))
}

/// The lines from `first` to `last`, as many as are shown at once.
pub(super) fn show(path: &str, first: u64, last: Option<u64>, cx: &mut Conversation) -> Answer {
    let most = first.max(1).saturating_add(MAX_SHOWN - 1);
    let end = last.unwrap_or(most).clamp(first, most);
    let args = json!({"path": path, "start_line": first, "end_line": end});
    let text = cx.must("read_file", args)?;
    let numbers = text
        .lines()
        .filter_map(|line| line.split_once('\t')?.0.trim().parse().ok());
    let shown: u64 = numbers.max().unwrap_or(end);
    let lines = fenced(&text.replace('\t', "  "));
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

/// The definitions, headings and sections of a file, or of all files of a folder.
pub(super) fn outline(path: &str, cx: &mut Conversation) -> Answer {
    let others = r"^#{1,6} |^\s*```|^\[.+\]\s*(?:#.*)?$|^\s*(?:unsafe\s+)?impl\b";
    let pattern = format!("{}|{others}", search_pattern(ANY));
    let mut found = hits(json!({ "pattern": pattern }), path, cx)?;
    let (any, mut is_fenced) = (Definition::of(ANY), false);
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
