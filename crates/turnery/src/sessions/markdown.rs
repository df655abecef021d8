//! Writes a session as Markdown for a person to read.

use super::{
    loop_table::visible_loops,
    tool_calls::{CallRecord, tool_calls},
    transcript::media_note,
};
use crate::terminal_text::{format_timestamp, replace_control_chars, single_line};
use std::io::{self, Write};
use turnery_engine::{Artifact, Content, LoopRecord, Message};
use turnery_store::SessionDocument;

/// Longest title. Unit: characters.
const TITLE_WIDTH: usize = 120;

/// Writes the conversation: the loops that the next prompt follows, without those that were rerun or set aside.
pub(super) fn write_markdown(document: &SessionDocument, out: &mut impl Write) -> io::Result<()> {
    let session = &document.session;
    let title = session.title.as_deref().unwrap_or("(no title)");
    writeln!(out, "# {}\n", single_line(title, TITLE_WIDTH))?;
    writeln!(out, "- Session: {}", code_span(session.id.as_str()))?;
    writeln!(out, "- Model: {}", code_span(&session.model))?;
    writeln!(
        out,
        "- Folder: {}",
        code_span(&session.cwd.display().to_string())
    )?;
    writeln!(out, "- Created: {}", format_timestamp(session.created_at))?;
    let seen = visible_loops(&document.loops, session.tip_loop_id.as_ref());
    for record in document
        .loops
        .iter()
        .filter(|it| seen.contains(&it.loop_id))
    {
        write_loop(record, out)?;
    }
    Ok(())
}

fn write_loop(record: &LoopRecord, out: &mut impl Write) -> io::Result<()> {
    let calls = tool_calls(record);
    for message in &record.messages {
        match &message.message {
            Message::User { content } => {
                writeln!(out, "\n## Prompt")?;
                for item in content {
                    writeln!(out)?;
                    match item {
                        Content::Text { text } => write_quote(text, out)?,
                        item => write_note(item, out)?,
                    }
                }
            }
            Message::Assistant { content, error, .. } => {
                for item in content {
                    match item {
                        Content::Text { text } if !text.trim().is_empty() => {
                            writeln!(out, "\n{}", close_fences(text))?;
                        }
                        Content::ToolCall(call) => {
                            writeln!(out, "\n**Tool call:** {}\n", code_span(&call.name))?;
                            let args = serde_json::to_string_pretty(&call.args)?;
                            write_fence("json", &args, out)?;
                        }
                        item => write_note(item, out)?,
                    }
                }
                if let Some(error) = error {
                    writeln!(out, "\n**Error:** {}", code_span(error))?;
                }
            }
            Message::System { text } => write_fence("", text, out)?,
            Message::ToolResult {
                call_id,
                tool_name,
                content,
                is_error,
            } => {
                let what = if *is_error { "Error" } else { "Result" };
                writeln!(out, "\n**{what}** of {}\n", code_span(tool_name))?;
                for item in content {
                    match item {
                        Content::Text { text } => write_fence("", text, out)?,
                        item => write_note(item, out)?,
                    }
                }
                if let Some(call) = calls.iter().find(|call| call.id == call_id) {
                    write_diffs(call, out)?;
                }
            }
        }
    }
    match &record.rejection {
        Some(rejection) => writeln!(out, "\n**Rejected:** {}", code_span(rejection)),
        None => Ok(()),
    }
}

fn write_diffs(call: &CallRecord<'_>, out: &mut impl Write) -> io::Result<()> {
    for artifact in call.artifacts {
        match artifact {
            Artifact::Diff { path, old, new, .. } => {
                let path = path.display().to_string();
                let paint = crate::terminal_text::Paint(false);
                let diff = crate::terminal_text::render_diff(&path, old.as_deref(), new, paint);
                writeln!(out)?;
                write_fence("diff", &diff, out)?;
            }
            Artifact::Content(_) | Artifact::Terminal { .. } => {}
        }
    }
    Ok(())
}

fn write_note(item: &Content, out: &mut impl Write) -> io::Result<()> {
    match media_note(item) {
        Some(note) => writeln!(out, "\n{}", code_span(&note)),
        None => Ok(()),
    }
}

/// Writes a prompt as a quote, so that no markup in it reaches beyond.
fn write_quote(text: &str, out: &mut impl Write) -> io::Result<()> {
    for line in replace_control_chars(text.trim_end()).lines() {
        writeln!(out, "{}", format!("> {line}").trim_end())?;
    }
    Ok(())
}

/// Writes text in a fence that is longer than any run of backticks in it.
fn write_fence(language: &str, text: &str, out: &mut impl Write) -> io::Result<()> {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let text = replace_control_chars(text.trim_end_matches('\n'));
    writeln!(out, "{fence}{language}\n{text}\n{fence}")
}

/// Returns the text, in one line, as code that ends where it ends.
fn code_span(text: &str) -> String {
    let text = single_line(text, 500);
    let fence = "`".repeat(longest_run(&text) + 1);
    match fence.len() {
        1 if !text.is_empty() => format!("`{text}`"),
        _ => format!("{fence} {text} {fence}"),
    }
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|it| it != '`').map(str::len);
    runs.max().unwrap_or_default()
}

/// Returns an answer, with its last code block closed if it was cut off, so that what follows is not code.
fn close_fences(text: &str) -> String {
    let mut open: Option<(char, usize)> = None;
    for line in text.lines() {
        let line = line.trim_start();
        let Some(mark @ ('`' | '~')) = line.chars().next() else {
            continue;
        };
        let rest = line.trim_start_matches(mark);
        let count = line.len() - rest.len();
        open = match open {
            Some((open_mark, open_count)) => {
                let is_end = mark == open_mark && count >= open_count && rest.trim().is_empty();
                open.filter(|_| !is_end)
            }
            None => {
                let is_start = count >= 3 && !(mark == '`' && rest.contains('`'));
                is_start.then_some((mark, count))
            }
        };
    }
    let mut text = replace_control_chars(text.trim_end()).into_owned();
    if let Some((mark, count)) = open {
        text.push('\n');
        text.extend(std::iter::repeat_n(mark, count));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fenced(text: &str) -> String {
        let mut out = Vec::new();
        write_fence("", text, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn fence_is_longer_than_any_in_the_text() {
        assert_eq!(fenced("plain\n"), "```\nplain\n```\n");
        assert_eq!(fenced("a\n````\nb"), "`````\na\n````\nb\n`````\n");
        assert_eq!(fenced("\u{1b}[2J"), "```\n\u{fffd}[2J\n```\n");
    }

    #[test]
    fn code_span_cannot_be_left() {
        assert_eq!(code_span("plain"), "`plain`");
        assert_eq!(code_span("a`b``c"), "``` a`b``c ```");
        assert!(!code_span("a\nb").contains('\n'));
    }

    #[test]
    fn open_code_block_of_an_answer_is_closed() {
        assert_eq!(close_fences("a\n```rust\nb\n"), "a\n```rust\nb\n```");
        assert_eq!(close_fences("~~~~\nb\n~~~"), "~~~~\nb\n~~~\n~~~~");
        for whole in [
            "a",
            "```\nb\n```",
            "```` x\n```\n````",
            "`code` ```inline``` b",
        ] {
            assert_eq!(close_fences(whole), whole);
        }
    }
}
