//! Faults of lines and bytes: how a message becomes a line, and a line a message.

use super::{Deed, Fault, Way, passing::Passing};
use serde_json::Value;

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("latin_1_out", latin_1_out),
    Fault::lines("utf8_lost_in", utf8_lost_in),
    Fault::lines("pretty_printed", pretty_printed),
    Fault::lines("two_messages_one_line", two_messages_one_line),
    Fault::lines("log_after_session_new", log_after_session_new),
    Fault::lines("tool_prints_to_stdout", tool_prints_to_stdout),
    Fault::lines("tool_reads_stdin", tool_reads_stdin),
    Fault::lines("text_at_the_end_only", text_at_the_end_only),
    Fault::lines("line_limit_64_kib", line_limit_64_kib),
    Fault::lines("long_line_kills", long_line_kills),
    Fault::lines("needlessly_long_line", needlessly_long_line),
    Fault::lines("blank_line_refused", blank_line_refused),
    Fault::lines("carriage_return_refused", carriage_return_refused),
    Fault::lines("last_line_lost", last_line_lost),
];

/// 64 KiB: what a reader with a fixed buffer takes.
const LIMIT: usize = 65_536;

fn latin_1_out(m: &mut Passing<'_>) {
    if m.way == Way::ToClient && !m.raw.is_ascii() {
        let text = String::from_utf8_lossy(m.raw);
        let bytes: Vec<u8> = text
            .chars()
            .map(|c| u8::try_from(c).unwrap_or(0xBF))
            .collect();
        m.write(bytes);
    }
}

fn utf8_lost_in(m: &mut Passing<'_>) {
    if m.client_says("session/prompt") && !m.raw.is_ascii() {
        let text = String::from_utf8_lossy(m.raw);
        let lost = text.replace(|c: char| !c.is_ascii(), "\u{FFFD}");
        m.write(lost);
    }
}

fn pretty_printed(m: &mut Passing<'_>) {
    if m.answers("session/new")
        && let Ok(pretty) = serde_json::to_string_pretty(&m.value)
    {
        m.write(pretty + "\n");
    }
}

fn two_messages_one_line(m: &mut Passing<'_>) {
    if m.update() == "available_commands_update" {
        let line = String::from_utf8_lossy(m.raw).trim_end().to_owned();
        m.write(format!("{line} {line}\n"));
    }
}

fn log_after_session_new(m: &mut Passing<'_>) {
    if m.answers("session/new") {
        let mut bytes = m.raw.to_vec();
        bytes.extend_from_slice(b"[info] session created\n");
        m.write(bytes);
    }
}

fn tool_prints_to_stdout(m: &mut Passing<'_>) {
    if m.update() == "tool_call" && m.text("/params/update/kind") == "execute" {
        let mut bytes = m.raw.to_vec();
        bytes.extend_from_slice(b"hello from a tool\n");
        m.write(bytes);
    }
}

/// The tool's process takes what the client says while it runs.
fn tool_reads_stdin(m: &mut Passing<'_>) {
    if m.is_tool_update() {
        let id = m.text("/params/update/toolCallId").to_owned();
        match m.text("/params/update/status") {
            "in_progress" => m.keep("running", id),
            "completed" | "failed" => m.keep("running", Value::Null),
            _ => {}
        }
    } else if m.way == Way::ToAgent
        && m.note("running").is_string()
        && m.client_says("session/list")
    {
        m.swallow();
    }
}

fn text_at_the_end_only(m: &mut Passing<'_>) {
    if m.update() == "agent_message_chunk" && m.wire.any_prompt().is_some() {
        m.hold();
    } else if m.way == Way::ToClient {
        m.release_before();
    }
}

fn line_limit_64_kib(m: &mut Passing<'_>) {
    if m.way == Way::ToAgent && m.raw.len() > LIMIT {
        m.swallow();
    }
}

fn long_line_kills(m: &mut Passing<'_>) {
    if m.way == Way::ToAgent && m.raw.len() > LIMIT {
        m.swallow();
        m.deed = Deed::Die;
    }
}

/// Forty MiB of padding in one line.
fn needlessly_long_line(m: &mut Passing<'_>) {
    if m.update() == "available_commands_update" {
        let mut bytes = m.raw.trim_ascii_end().to_vec();
        bytes.resize(bytes.len() + 40 * 1024 * 1024, b' ');
        bytes.push(b'\n');
        m.write(bytes);
    }
}

fn blank_line_refused(m: &mut Passing<'_>) {
    if m.way == Way::ToAgent && m.raw.trim_ascii().is_empty() {
        m.refuse(-32700, "this line is empty");
    }
}

fn carriage_return_refused(m: &mut Passing<'_>) {
    if m.way == Way::ToAgent && m.raw.ends_with(b"\r\n") && !m.raw.trim_ascii().is_empty() {
        m.refuse(-32700, "this line ends with a carriage return");
    }
}

fn last_line_lost(m: &mut Passing<'_>) {
    if m.way == Way::ToAgent && !m.raw.ends_with(b"\n") {
        m.swallow();
    }
}
