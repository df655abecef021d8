//! Faults of framing: the encoding and decoding of messages as lines.

use super::{Direction, fault::LineFunction, intercepted_line::InterceptedLine};

pub(super) const FUNCTIONS: &[LineFunction] = &[
    ("latin_1_out", latin_1_out),
    ("utf8_lost_in", utf8_lost_in),
    ("needlessly_long_line", needlessly_long_line),
    ("blank_line_refused", blank_line_refused),
    ("crlf_line_dropped", crlf_line_dropped),
    ("last_line_lost", last_line_lost),
];

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

fn crlf_line_dropped(m: &mut InterceptedLine<'_>) {
    if m.direction == Direction::ToAgent && m.raw.ends_with(b"\r\n") {
        m.swallow();
    }
}

fn last_line_lost(m: &mut InterceptedLine<'_>) {
    if m.direction == Direction::ToAgent && !m.raw.ends_with(b"\n") {
        m.swallow();
    }
}
