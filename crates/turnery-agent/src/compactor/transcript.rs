//! Transcript: messages as a record to be read, not as a conversation to be gone on with.
//!
//! Plain text, since many servers take no calls of tools in a request that offers no tools.

use std::fmt::Write;
use turnery_engine::{
    Content, LlmMessage, Message,
    compaction::{Plan, ends, text_tokens},
};

/// How many lines of a tool's output are shown: as many as there is room for.
const OUTPUT_LINES: [usize; 4] = [100, 40, 15, 5];
/// What people and models say is shown so many times longer.
const SAID: usize = 4;
/// Stands where messages were left out.
const OMITTED: &str = "[… what was said before this is left out …]\n";

/// The record of what a plan replaces, in about `room` tokens. An earlier summary is always in it; of
/// the rest, the latest part.
pub(super) fn of(plan: &Plan, room: u64) -> String {
    let mut record = String::new();
    for summary in plan.earlier() {
        let _ = writeln!(record, "<earlier>\n{}\n</earlier>", summary.message.text());
    }
    let room = room.saturating_sub(text_tokens(&record));
    let mut entries = Vec::new();
    for lines in OUTPUT_LINES {
        entries = plan.replaced().iter().map(|it| entry(it, lines)).collect();
        if size(&entries) <= room {
            break;
        }
    }
    let mut left = size(&entries);
    let mut first = 0;
    while left > room && first < entries.len() {
        left -= text_tokens(&entries[first]);
        first += 1;
    }
    if first > 0 {
        record.push_str(OMITTED);
    }
    record.extend(entries.drain(first..));
    record
}

fn size(entries: &[String]) -> u64 {
    entries.iter().map(|entry| text_tokens(entry)).sum()
}

fn entry(message: &LlmMessage, lines: usize) -> String {
    match &message.message {
        Message::System { text } => told("notice", &ends(text, lines * SAID)),
        Message::User { content } => told("person", &said(content, lines * SAID)),
        Message::Assistant { content, .. } => {
            let mut text = said(content, lines * SAID);
            for call in message.message.calls() {
                let args = ends(&call.args.to_string(), lines);
                let _ = write!(text, "\n[calls {} with {args}]", call.name);
            }
            told("agent", text.trim_start())
        }
        Message::ToolResult {
            tool_name,
            content,
            is_error,
            ..
        } => {
            let text = said(content, lines);
            let how = if *is_error { "failed" } else { "answered" };
            told("tool", &format!("[{tool_name} {how}]\n{text}"))
        }
    }
}

fn told(who: &str, text: &str) -> String {
    format!("<{who}>\n{text}\n</{who}>\n")
}

/// Text, and a mark for each picture and recording. Reasoning is left out: what came of it was said.
fn said(content: &[Content], lines: usize) -> String {
    let mut text = String::new();
    for item in content {
        let part = match item {
            Content::Text { text } => ends(text, lines),
            Content::Image(_) => "[a picture]".to_owned(),
            Content::Audio(_) => "[a recording]".to_owned(),
            Content::Thinking { .. } | Content::ToolCall(_) | Content::Opaque { .. } => continue,
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&part);
    }
    text
}
