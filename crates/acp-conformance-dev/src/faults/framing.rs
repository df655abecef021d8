//! Faults of framing: the encoding and decoding of messages as lines.

use super::{Direction, Fault, SideEffect, intercepted_line::InterceptedLine};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("latin_1_out", latin_1_out),
    Fault::lines("utf8_lost_in", utf8_lost_in),
    Fault::lines("pretty_printed", pretty_printed),
    Fault::lines("two_messages_one_line", two_messages_one_line),
    Fault::lines("log_after_list", log_after_list),
    Fault::lines("tool_prints_to_stdout", tool_prints_to_stdout),
    Fault::lines("tool_reads_stdin", tool_reads_stdin),
    Fault::lines("text_at_the_end_only", text_at_the_end_only),
    Fault::lines("line_limit_64_kib", line_limit_64_kib),
    Fault::lines("long_line_kills", long_line_kills),
    Fault::lines("needlessly_long_line", needlessly_long_line),
    Fault::lines("blank_line_refused", blank_line_refused),
    Fault::lines("carriage_return_dropped", carriage_return_dropped),
    Fault::lines("last_line_lost", last_line_lost),
];

/// Line limit of a reader with a fixed buffer. Unit: bytes.
const LINE_LIMIT: usize = 65_536;

fn latin_1_out(m: &mut InterceptedLine<'_>) {
    if m.is_agent_call("session/update") && !m.raw.is_ascii() {
        let text = String::from_utf8_lossy(m.raw);
        let bytes: Vec<u8> = text
            .chars()
            .map(|c| u8::try_from(c).unwrap_or(0xBF))
            .collect();
        m.replace_bytes(bytes);
    }
}

fn utf8_lost_in(m: &mut InterceptedLine<'_>) {
    if m.direction == Direction::ToAgent && !m.raw.is_ascii() {
        let text = String::from_utf8_lossy(m.raw);
        let lost = text.replace(|c: char| !c.is_ascii(), "\u{FFFD}");
        m.replace_bytes(lost);
    }
}

/// Additional message, so that no message of the agent is lost.
const EXTRA_MESSAGE: &str = r#"{"jsonrpc":"2.0","method":"_broken/hello"}"#;

fn append_after_list(m: &mut InterceptedLine<'_>, line: &str) {
    if m.is_agent_result("session/list") {
        let mut bytes = m.raw.to_vec();
        bytes.extend_from_slice(line.as_bytes());
        m.replace_bytes(bytes);
    }
}

fn pretty_printed(m: &mut InterceptedLine<'_>) {
    let pretty = EXTRA_MESSAGE.replace(',', ",\n  ");
    append_after_list(m, &format!("{pretty}\n"));
}

fn two_messages_one_line(m: &mut InterceptedLine<'_>) {
    append_after_list(m, &format!("{EXTRA_MESSAGE} {EXTRA_MESSAGE}\n"));
}

fn log_after_list(m: &mut InterceptedLine<'_>) {
    append_after_list(m, "[info] sessions listed\n");
}

fn tool_prints_to_stdout(m: &mut InterceptedLine<'_>) {
    if m.update_kind() == "tool_call" && m.get_str("/params/update/kind") == "execute" {
        let mut bytes = m.raw.to_vec();
        bytes.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":\"conformance/noise\"}\n");
        m.replace_bytes(bytes);
    }
}

/// Lets the tool's process consume the first request that is not about a session.
fn tool_reads_stdin(m: &mut InterceptedLine<'_>) {
    if m.update_kind() == "tool_call" && m.get_str("/params/update/kind") == "execute" {
        m.remember("reads", true);
    } else if m.direction == Direction::ToAgent
        && m.recall("reads") == true
        && m.has("/id")
        && m.has("/method")
        && !m.get_str("/method").starts_with("session/")
    {
        m.remember("reads", false);
        m.swallow();
    }
}

fn text_at_the_end_only(m: &mut InterceptedLine<'_>) {
    if m.update_kind() == "agent_message_chunk" && m.connection.any_running_prompt().is_some() {
        m.hold();
    } else if m.direction == Direction::ToClient {
        m.release_before();
    }
}

fn line_limit_64_kib(m: &mut InterceptedLine<'_>) {
    if m.direction == Direction::ToAgent && m.raw.len() > LINE_LIMIT {
        m.swallow();
    }
}

fn long_line_kills(m: &mut InterceptedLine<'_>) {
    if m.direction == Direction::ToAgent && m.raw.len() > LINE_LIMIT {
        m.swallow();
        m.side_effect = SideEffect::Die;
    }
}

/// Pads a line with 40 MiB of blanks.
fn needlessly_long_line(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/list") {
        let mut bytes = m.raw.trim_ascii_end().to_vec();
        bytes.resize(bytes.len() + 40 * 1024 * 1024, b' ');
        bytes.push(b'\n');
        m.replace_bytes(bytes);
    }
}

fn blank_line_refused(m: &mut InterceptedLine<'_>) {
    if m.direction == Direction::ToAgent && m.raw.trim_ascii().is_empty() {
        m.respond_error(-32700, "this line is empty");
    }
}

fn carriage_return_dropped(m: &mut InterceptedLine<'_>) {
    if m.direction == Direction::ToAgent && m.raw.ends_with(b"\r\n") {
        m.swallow();
    }
}

fn last_line_lost(m: &mut InterceptedLine<'_>) {
    if m.direction == Direction::ToAgent && !m.raw.ends_with(b"\n") {
        m.swallow();
    }
}
