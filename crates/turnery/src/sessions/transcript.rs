//! Prints the messages of a session as readable text.

use super::tool_calls::{CallRecord, tool_calls};
use crate::{
    run::loop_number,
    terminal_text::{Paint, first_line, render_diff, replace_control_chars},
};
use std::{
    collections::HashSet,
    io::{self, IsTerminal as _, Write},
    sync::Arc,
};
use turnery_engine::{Artifact, Content, LoopId, LoopRecord, Message};
use turnery_tools::escape_invisible_line;

/// Longest tool result line, unless results are shown in full. Unit: characters.
const RESULT_WIDTH: usize = 120;

/// Writes the messages in order. With `is_full`, arguments and results are whole, and changes to files follow the results.
pub(super) fn write_transcript(
    loops: &[Arc<LoopRecord>],
    seen: &HashSet<LoopId>,
    is_full: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    for record in loops {
        if !seen.contains(&record.loop_id) {
            let number = loop_number(&record.loop_id);
            writeln!(
                out,
                "\n· loop {number}, which the model does not see any more"
            )?;
        }
        let calls = if is_full {
            tool_calls(record)
        } else {
            Vec::new()
        };
        for message in &record.messages {
            write_message(&message.message, &calls, is_full, out)?;
        }
        if let Some(rejection) = &record.rejection {
            writeln!(out, "✗ {}", replace_control_chars(rejection))?;
        }
    }
    Ok(())
}

/// Writes a message. With `is_full`, the results of `calls` are whole and followed by their changes to files.
pub(super) fn write_message(
    message: &Message,
    calls: &[CallRecord<'_>],
    is_full: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    match message {
        Message::User { content } => {
            writeln!(out)?;
            write_content("> ", content, is_full, out)
        }
        Message::Assistant { content, error, .. } => {
            write_content("", content, is_full, out)?;
            match error {
                Some(error) => writeln!(out, "✗ {}", first_line(error, RESULT_WIDTH)),
                None => Ok(()),
            }
        }
        Message::System { text } => {
            writeln!(out, "· {}", replace_control_chars(text.trim_end()))
        }
        Message::ToolResult {
            call_id,
            tool_name,
            content,
            is_error,
        } if is_full => {
            let mark = if *is_error { "✗" } else { "✓" };
            writeln!(out, "  {mark} {}", escape_invisible_line(tool_name))?;
            write_content("    ", content, is_full, out)?;
            let call = calls.iter().find(|call| call.id == call_id);
            write_diffs(call.map_or(&[], |call| call.artifacts), out)
        }
        Message::ToolResult {
            content, is_error, ..
        } => {
            let mark = if *is_error { "✗" } else { "✓" };
            let text = content.iter().find_map(Content::as_text).unwrap_or("");
            writeln!(out, "  {mark} {}", first_line(text, RESULT_WIDTH))
        }
    }
}

/// Writes the changes to files that a call has made.
fn write_diffs(artifacts: &[Artifact], out: &mut impl Write) -> io::Result<()> {
    let paint = Paint(io::stdout().is_terminal());
    for artifact in artifacts {
        match artifact {
            Artifact::Diff { path, old, new, .. } => {
                let path = escape_invisible_line(&path.display().to_string()).into_owned();
                for line in render_diff(&path, old.as_deref(), new, paint).lines() {
                    writeln!(out, "    {line}")?;
                }
            }
            Artifact::Content(_) | Artifact::Terminal { .. } => {}
        }
    }
    Ok(())
}

fn write_content(
    mark: &str,
    content: &[Content],
    is_full: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    for item in content {
        match item {
            Content::Text { text } => {
                for line in text.trim_end().lines() {
                    writeln!(out, "{mark}{}", replace_control_chars(line))?;
                }
            }
            Content::ToolCall(call) => {
                let args = call.args.to_string();
                let args = match is_full {
                    true => escape_invisible_line(&args).into_owned(),
                    false => first_line(&args, RESULT_WIDTH),
                };
                writeln!(out, "• {} {args}", escape_invisible_line(&call.name))?;
            }
            Content::Image(_)
            | Content::Audio(_)
            | Content::Document(_)
            | Content::Thinking { .. }
            | Content::Opaque { .. } => {
                if let Some(note) = media_note(item) {
                    writeln!(out, "{mark}{note}")?;
                }
            }
        }
    }
    Ok(())
}

/// Returns a note in place of a picture, a recording or a document.
pub(super) fn media_note(item: &Content) -> Option<String> {
    match item {
        Content::Image(image) => Some(format!(
            "(a picture, {})",
            replace_control_chars(&image.mime_type)
        )),
        Content::Audio(audio) => Some(format!(
            "(a recording, {})",
            replace_control_chars(&audio.mime_type)
        )),
        Content::Document(document) => Some(format!(
            "(a document, {})",
            replace_control_chars(&document.name)
        )),
        Content::Text { .. }
        | Content::ToolCall(_)
        | Content::Thinking { .. }
        | Content::Opaque { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnery_engine::{ImageData, ToolCall};

    #[test]
    fn transcript_has_line_for_each_content_item() {
        let mut out = Vec::new();
        let content = [
            Content::text("first\nsecond\n"),
            Content::Image(ImageData {
                mime_type: "image/png".to_owned(),
                base64: "AA==".into(),
            }),
            Content::ToolCall(ToolCall::new("c", "read", serde_json::json!({"path": "a"}))),
        ];
        write_content("> ", &content, false, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "> first\n> second\n> (a picture, image/png)\n• read {\"path\":\"a\"}\n"
        );
    }
}
