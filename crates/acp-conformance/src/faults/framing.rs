//! Faults of lines and bytes: how a message becomes a line, and a line a message.

use super::{Deed, Fault, Way, passing::Passing};

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

/// 64 KiB: what a reader with a fixed buffer takes.
const LIMIT: usize = 65_536;

fn latin_1_out(m: &mut Passing<'_>) {
    if m.agent_says("session/update") && !m.raw.is_ascii() {
        let text = String::from_utf8_lossy(m.raw);
        let bytes: Vec<u8> = text
            .chars()
            .map(|c| u8::try_from(c).unwrap_or(0xBF))
            .collect();
        m.write(bytes);
    }
}

fn utf8_lost_in(m: &mut Passing<'_>) {
    if m.way == Way::ToAgent && !m.raw.is_ascii() {
        let text = String::from_utf8_lossy(m.raw);
        let lost = text.replace(|c: char| !c.is_ascii(), "\u{FFFD}");
        m.write(lost);
    }
}

/// One more message than there was, so that none is lost.
const HELLO: &str = r#"{"jsonrpc":"2.0","method":"_broken/hello"}"#;

fn after_list(m: &mut Passing<'_>, line: &str) {
    if m.grants("session/list") {
        let mut bytes = m.raw.to_vec();
        bytes.extend_from_slice(line.as_bytes());
        m.write(bytes);
    }
}

fn pretty_printed(m: &mut Passing<'_>) {
    let pretty = HELLO.replace(',', ",\n  ");
    after_list(m, &format!("{pretty}\n"));
}

fn two_messages_one_line(m: &mut Passing<'_>) {
    after_list(m, &format!("{HELLO} {HELLO}\n"));
}

fn log_after_list(m: &mut Passing<'_>) {
    after_list(m, "[info] sessions listed\n");
}

fn tool_prints_to_stdout(m: &mut Passing<'_>) {
    if m.update() == "tool_call" && m.text("/params/update/kind") == "execute" {
        let mut bytes = m.raw.to_vec();
        bytes.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":\"conformance/noise\"}\n");
        m.write(bytes);
    }
}

/// The tool's process takes the first request that is no business of a session.
fn tool_reads_stdin(m: &mut Passing<'_>) {
    if m.update() == "tool_call" && m.text("/params/update/kind") == "execute" {
        m.keep("reads", true);
    } else if m.way == Way::ToAgent
        && m.note("reads") == true
        && m.has("/id")
        && m.has("/method")
        && !m.text("/method").starts_with("session/")
    {
        m.keep("reads", false);
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
    if m.grants("session/list") {
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

fn carriage_return_dropped(m: &mut Passing<'_>) {
    if m.way == Way::ToAgent && m.raw.ends_with(b"\r\n") {
        m.swallow();
    }
}

fn last_line_lost(m: &mut Passing<'_>) {
    if m.way == Way::ToAgent && !m.raw.ends_with(b"\n") {
        m.swallow();
    }
}
