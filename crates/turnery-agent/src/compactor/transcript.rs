//! Renders messages as a transcript to be summarized, not as a conversation to be continued.
//!
//! The transcript is plain text, since many servers reject tool calls in a request without tools.

use std::fmt::Write;
use turnery_engine::{
    Content, LlmMessage, Message,
    compaction::{CompactionPlan, estimate_text_tokens, truncate_middle},
};

/// Lines shown of each tool output: the first value that fits.
const OUTPUT_LINES: [usize; 4] = [100, 40, 15, 5];
/// Factor by which user and model messages may be longer.
const PROSE_FACTOR: usize = 4;
/// Marker for omitted messages.
const OMITTED: &str = "[… what was said before this is left out …]\n";

/// Renders the messages that a plan replaces, in about `room` tokens. Always contains an earlier summary;
/// drops the oldest messages first.
pub(super) fn render_transcript(plan: &CompactionPlan, room: u64) -> String {
    let mut record = String::new();
    for summary in plan.previous_summary() {
        let _ = writeln!(record, "<earlier>\n{}\n</earlier>", summary.message.text());
    }
    let room = room.saturating_sub(estimate_text_tokens(&record));
    let mut entries = Vec::new();
    for lines in OUTPUT_LINES {
        entries = plan
            .replaced_messages()
            .iter()
            .map(|it| render_entry(it, lines))
            .collect();
        if total_tokens(&entries) <= room {
            break;
        }
    }
    let mut left = total_tokens(&entries);
    let mut first = 0;
    while left > room && first < entries.len() {
        left -= estimate_text_tokens(&entries[first]);
        first += 1;
    }
    if first > 0 {
        record.push_str(OMITTED);
    }
    record.extend(entries.drain(first..));
    record
}

fn total_tokens(entries: &[String]) -> u64 {
    entries
        .iter()
        .map(|entry| estimate_text_tokens(entry))
        .sum()
}

fn render_entry(message: &LlmMessage, lines: usize) -> String {
    match &message.message {
        Message::System { text } => {
            wrap_in_tag("notice", &truncate_middle(text, lines * PROSE_FACTOR))
        }
        Message::User { content } => {
            wrap_in_tag("person", &render_content(content, lines * PROSE_FACTOR))
        }
        Message::Assistant { content, .. } => {
            let mut text = render_content(content, lines * PROSE_FACTOR);
            for call in message.message.calls() {
                let args = truncate_middle(&call.args.to_string(), lines);
                let _ = write!(text, "\n[calls {} with {args}]", call.name);
            }
            wrap_in_tag("agent", text.trim_start())
        }
        Message::ToolResult {
            tool_name,
            content,
            is_error,
            ..
        } => {
            let text = render_content(content, lines);
            let how = if *is_error { "failed" } else { "answered" };
            wrap_in_tag("tool", &format!("[{tool_name} {how}]\n{text}"))
        }
    }
}

fn wrap_in_tag(who: &str, text: &str) -> String {
    format!("<{who}>\n{text}\n</{who}>\n")
}

/// Renders text, with a placeholder for each image, recording and document. Reasoning is omitted.
fn render_content(content: &[Content], lines: usize) -> String {
    let mut text = String::new();
    for item in content {
        let part = match item {
            Content::Text { text } => truncate_middle(text, lines),
            Content::Image(_) => "[a picture]".to_owned(),
            Content::Audio(_) => "[a recording]".to_owned(),
            Content::Document(document) => format!("[a document, {}]", document.name),
            Content::Thinking { .. } | Content::ToolCall(_) | Content::Opaque { .. } => continue,
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&part);
    }
    text
}
