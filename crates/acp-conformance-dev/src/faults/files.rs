//! Faults of requests for the client's files.

use super::{fault::Fault, intercepted_line::InterceptedLine};
use serde_json::json;

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("read_unasked", read_unasked),
    Fault::lines("write_unasked", write_unasked),
    Fault::lines("file_path_relative", file_path_relative),
    Fault::lines("file_line_zero", file_line_zero),
    Fault::lines("file_error_sinks_turn", file_error_sinks_turn),
];

/// Returns true for a prompt that the agent will accept.
fn is_prompt_start(m: &InterceptedLine<'_>) -> bool {
    m.is_client_call("session/prompt")
        && m.connection.protocol_version == 1
        && m.connection.open_sessions.contains(&m.session_id())
        && m.get("/params/prompt/0").is_object()
}

fn read_unasked(m: &mut InterceptedLine<'_>) {
    if is_prompt_start(m) && m.connection.client_capabilities["fs"]["readTextFile"] != true {
        let session = m.session_id();
        m.send_request_to_client(
            "fs/read_text_file",
            json!({"sessionId": session, "path": "/etc/hostname"}),
        );
    }
}

fn write_unasked(m: &mut InterceptedLine<'_>) {
    let fs = &m.connection.client_capabilities["fs"];
    if is_prompt_start(m) && fs["readTextFile"] == true && fs["writeTextFile"] != true {
        let session = m.session_id();
        m.send_request_to_client(
            "fs/write_text_file",
            json!({"sessionId": session, "path": "/tmp/unasked", "content": ""}),
        );
    }
}

fn file_path_relative(m: &mut InterceptedLine<'_>) {
    if m.is_agent_call("fs/read_text_file") || m.is_agent_call("fs/write_text_file") {
        let path = m.get_str("/params/path").trim_start_matches('/').to_owned();
        m.set("/params/path", path);
    }
}

fn file_line_zero(m: &mut InterceptedLine<'_>) {
    if m.is_agent_call("fs/read_text_file") {
        m.set("/params/line", 0);
    }
}

fn fail_turn_after_error(m: &mut InterceptedLine<'_>, is_error: bool) {
    if is_error {
        m.remember("sunk", true);
    } else if m.is_agent_result("session/prompt") && m.recall("sunk") == true {
        m.remember("sunk", false);
        m.turn_into_error(-32603, "the client could not do something with a file");
    }
}

fn file_error_sinks_turn(m: &mut InterceptedLine<'_>) {
    let reply =
        m.is_client_response("fs/read_text_file") || m.is_client_response("fs/write_text_file");
    let bad = reply && m.has("/error");
    fail_turn_after_error(m, bad);
}
