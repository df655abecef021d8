//! Derives session titles from the first prompt.

use crate::Content;

/// Maximum length of a title. Unit: characters.
const MAX_TITLE_CHARS: usize = 80;

/// Prefixes of lines that clients insert for the model, in lower case.
const CLIENT_NOTE_PREFIXES: [&str; 6] = [
    "system note:",
    "system prompt:",
    "system:",
    "[system",
    "[base]",
    "[context",
];
/// Prefixes that clients put before the user's own text, in lower case.
const SPEAKER_PREFIXES: [&str; 4] = ["user:", "human:", "user message:", "prompt:"];
/// Start and end marker of a code block.
const CODE_FENCE: &str = "```";
/// Prefixes of system prompts that clients send as a block of the first prompt, in lower case.
const PERSONA_PREFIXES: [&str; 4] = ["you are a ", "you are an ", "act as a ", "act as an "];

/// Returns the first line written by the user, shortened; the very first line if all lines look like client
/// text.
pub(crate) fn title_from_content(content: &[Content]) -> Option<String> {
    let texts = || content.iter().filter_map(Content::as_text);
    let line = texts().find_map(first_user_line);
    let is_of_code =
        |line: &&str| has_alphanumeric(line) && !line.trim_start().starts_with(CODE_FENCE);
    let line = line.or_else(|| texts().flat_map(str::lines).find(is_of_code))?;
    let line = line.trim();
    let line = strip_heading_marks(line).unwrap_or(line);
    let mut title: String = line.chars().take(MAX_TITLE_CHARS).collect();
    if line.chars().nth(MAX_TITLE_CHARS).is_some() {
        title.push('…');
    }
    Some(title)
}

/// Returns the first line of a block that the user wrote.
fn first_user_line(block: &str) -> Option<&str> {
    let mut rest = block.trim_start();
    if PERSONA_PREFIXES
        .iter()
        .any(|words| starts_with_ignore_case(rest, words))
    {
        return None;
    }
    while !rest.is_empty() {
        if let Some(after) = strip_leading_element(rest) {
            rest = after.trim_start();
            continue;
        }
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        if line.starts_with(CODE_FENCE) {
            let body = rest.get(line.len()..).unwrap_or_default();
            let end = body.find("\n```").and_then(|at| body.get(at + 1..));
            let after = end.and_then(|last| last.split_once('\n'));
            rest = after.map_or("", |(_, after)| after.trim_start());
            continue;
        }
        rest = after.trim_start();
        if CLIENT_NOTE_PREFIXES
            .iter()
            .any(|words| starts_with_ignore_case(line, words))
        {
            continue;
        }
        let speaker = SPEAKER_PREFIXES
            .iter()
            .find(|words| starts_with_ignore_case(line, words));
        let own = speaker.map_or(line, |words| line.get(words.len()..).unwrap_or_default());
        if has_alphanumeric(own) {
            return Some(own);
        }
    }
    None
}

/// Returns the text after a leading element like `<system_context>…</system_context>`. A name without `_` or
/// `-` may be code pasted by the user, so it is not stripped.
fn strip_leading_element(text: &str) -> Option<&str> {
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

/// Returns the text of a heading.
fn strip_heading_marks(line: &str) -> Option<&str> {
    let words = line.trim_start_matches('#').strip_prefix(' ')?.trim();
    (line.starts_with('#') && has_alphanumeric(words)).then_some(words)
}

/// Returns true if a text starts with `words`, ignoring ASCII case.
fn starts_with_ignore_case(text: &str, words: &str) -> bool {
    let start = text.get(..words.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(words))
}

fn has_alphanumeric(line: &str) -> bool {
    line.contains(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(blocks: &[&str]) -> Option<String> {
        let blocks: Vec<_> = blocks.iter().map(|text| Content::text(*text)).collect();
        title_from_content(&blocks)
    }

    #[test]
    fn first_user_line_is_the_title() {
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
    fn user_text_is_kept() {
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
