//! Faults of the client's files: when they are asked for, and how.

use super::{Fault, passing::Passing};
use serde_json::json;

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("read_unasked", read_unasked),
    Fault::lines("write_unasked", write_unasked),
    Fault::lines("file_path_relative", file_path_relative),
    Fault::lines("file_line_zero", file_line_zero),
    Fault::lines("file_error_sinks_turn", file_error_sinks_turn),
];

/// A prompt that the agent will take.
fn prompt_begins(m: &Passing<'_>) -> bool {
    m.client_says("session/prompt")
        && m.wire.version == 1
        && m.wire.sessions.contains(&m.session())
        && m.get("/params/prompt/0").is_object()
}

fn read_unasked(m: &mut Passing<'_>) {
    if prompt_begins(m) && m.wire.client["fs"]["readTextFile"] != true {
        let session = m.session();
        m.ask_client(
            "fs/read_text_file",
            json!({"sessionId": session, "path": "/etc/hostname"}),
        );
    }
}

fn write_unasked(m: &mut Passing<'_>) {
    let fs = &m.wire.client["fs"];
    if prompt_begins(m) && fs["readTextFile"] == true && fs["writeTextFile"] != true {
        let session = m.session();
        m.ask_client(
            "fs/write_text_file",
            json!({"sessionId": session, "path": "/tmp/unasked", "content": ""}),
        );
    }
}

fn file_path_relative(m: &mut Passing<'_>) {
    if m.agent_says("fs/read_text_file") || m.agent_says("fs/write_text_file") {
        let path = m.text("/params/path").trim_start_matches('/').to_owned();
        m.set("/params/path", path);
    }
}

fn file_line_zero(m: &mut Passing<'_>) {
    if m.agent_says("fs/read_text_file") {
        m.set("/params/line", 0);
    }
}

fn sink(m: &mut Passing<'_>, bad: bool) {
    if bad {
        m.keep("sunk", true);
    } else if m.grants("session/prompt") && m.note("sunk") == true {
        m.keep("sunk", false);
        m.turn_into_error(-32603, "the client could not do something with a file");
    }
}

fn file_error_sinks_turn(m: &mut Passing<'_>) {
    let reply = m.replies("fs/read_text_file") || m.replies("fs/write_text_file");
    let bad = reply && m.has("/error");
    sink(m, bad);
}
