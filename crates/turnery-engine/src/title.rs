//! Titles of sessions, out of the first prompt.

use crate::Content;

/// In characters.
const LONGEST: usize = 80;

/// Beginnings of lines that a client writes for the model, in lower case.
const NOTES: [&str; 6] = [
    "system note:",
    "system prompt:",
    "system:",
    "[system",
    "[base]",
    "[context",
];
/// What a client writes in front of the user's own words, in lower case.
const SPEAKERS: [&str; 4] = ["user:", "human:", "user message:", "prompt:"];
/// What code begins and ends with.
const FENCE: &str = "```";
/// How a system prompt begins that a client sends as a block of the first prompt, in lower case.
const PERSONAS: [&str; 4] = ["you are a ", "you are an ", "act as a ", "act as an "];

/// The first line that is the user's own, shortened. Where all of it looks like a client's, the first line.
pub(crate) fn of(content: &[Content]) -> Option<String> {
    let texts = || {
        content.iter().filter_map(|block| match block {
            Content::Text { text } => Some(text.as_str()),
            Content::Thinking { .. }
            | Content::Image(_)
            | Content::Audio(_)
            | Content::ToolCall(_)
            | Content::Opaque { .. } => None,
        })
    };
    let line = texts().find_map(own_line);
    let is_of_code = |line: &&str| has_words(line) && !line.trim_start().starts_with(FENCE);
    let line = line.or_else(|| texts().flat_map(str::lines).find(is_of_code))?;
    let line = line.trim();
    let line = heading(line).unwrap_or(line);
    let mut title: String = line.chars().take(LONGEST).collect();
    if line.chars().nth(LONGEST).is_some() {
        title.push('…');
    }
    Some(title)
}

/// The first line of a block that is the user's own.
fn own_line(block: &str) -> Option<&str> {
    let mut rest = block.trim_start();
    if PERSONAS.iter().any(|words| begins(rest, words)) {
        return None;
    }
    while !rest.is_empty() {
        if let Some(after) = after_element(rest) {
            rest = after.trim_start();
            continue;
        }
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        if line.starts_with(FENCE) {
            let body = rest.get(line.len()..).unwrap_or_default();
            let end = body.find("\n```").and_then(|at| body.get(at + 1..));
            let after = end.and_then(|last| last.split_once('\n'));
            rest = after.map_or("", |(_, after)| after.trim_start());
            continue;
        }
        rest = after.trim_start();
        if NOTES.iter().any(|words| begins(line, words)) {
            continue;
        }
        let speaker = SPEAKERS.iter().find(|words| begins(line, words));
        let own = speaker.map_or(line, |words| line.get(words.len()..).unwrap_or_default());
        if has_words(own) {
            return Some(own);
        }
    }
    None
}

/// What follows an element like `<system_context>…</system_context>` at the beginning. A name without `_` or `-`
/// may as well be code that the user pasted.
fn after_element(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('<')?;
    let is_of_name = |c: char| c.is_ascii_lowercase() || c == '_' || c == '-';
    let name = inside.get(..inside.find(|c| !is_of_name(c))?)?;
    if !name.contains(['_', '-']) {
        return None;
    }
    let end = format!("</{name}>");
    let at = text.find(&end)?;
    text.get(at + end.len()..)
}

/// The words of a heading.
fn heading(line: &str) -> Option<&str> {
    let words = line.trim_start_matches('#').strip_prefix(' ')?.trim();
    (line.starts_with('#') && has_words(words)).then_some(words)
}

/// Whether a text begins with these words, in whatever case.
fn begins(text: &str, words: &str) -> bool {
    let start = text.get(..words.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(words))
}

fn has_words(line: &str) -> bool {
    line.contains(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(blocks: &[&str]) -> Option<String> {
        let blocks: Vec<_> = blocks.iter().map(|text| Content::text(*text)).collect();
        of(&blocks)
    }

    #[test]
    fn the_first_line_of_the_user_is_the_title() {
        let fix = "Fix the parser";
        for blocks in [
            &["Fix the parser"][..],
            &["\n  Fix the parser  \nand test it"],
            &["System note: the date is Monday.\nFix the parser"],
            &["SYSTEM NOTE: be brief", "user: Fix the parser"],
            &["User:\n\nFix the parser"],
            &["---\nHuman: Fix the parser"],
            &["```rust\nfn main() {}\n```\nFix the parser"],
            &["```\n```\n\n```rust\nlet a;\n```", "Fix the parser"],
            &["# Fix the parser\n\nIt is slow."],
            &["```rust\nFix the parser\n```"],
            &["```\nFix the parser"],
            &["<system-reminder>\nUse tools.\n</system-reminder>\nFix the parser"],
            &[
                "<system_context>Continuing</system_context>",
                "Fix the parser",
            ],
            &[
                "You are an expert programmer.\nAlways be brief.",
                "Fix the parser",
            ],
        ] {
            assert_eq!(title(blocks).as_deref(), Some(fix), "{blocks:?}");
        }
    }

    #[test]
    fn what_the_user_writes_stays() {
        for own in [
            "You are a bot: what can you do?",
            "System: what is it?",
            "<div>is broken</div>",
            "<my-element> is not closed",
            "users: list them",
            "Systematic errors",
            "#1234 is open",
            "`x` is slow",
        ] {
            assert_eq!(title(&[own]).as_deref(), Some(own));
        }
        assert_eq!(title(&[]), None);
        assert_eq!(title(&["\n \n"]), None);
        let long = "é".repeat(81);
        assert_eq!(title(&[&long]), Some(format!("{}…", "é".repeat(80))));
    }
}
