//! Faults of sessions: their creation, loading, listing and closing.

use super::{Direction, fault::LineFunction, intercepted_line::InterceptedLine};
use serde_json::{Value, json};

pub(super) const FUNCTIONS: &[LineFunction] = &[
    ("session_id_twice", session_id_twice),
    ("cwd_of_the_first_session", cwd_of_the_first_session),
    ("bad_mcp_server_skipped", bad_mcp_server_skipped),
    ("crosstalk", crosstalk),
    ("relative_root_dropped", relative_root_dropped),
    ("roots_restored", roots_restored),
    ("relative_to_the_root", relative_to_the_root),
    ("no_bounds", no_bounds),
    ("loaded_without_context", loaded_without_context),
    ("resumed_without_context", resumed_without_context),
    ("list_touches_sessions", list_touches_sessions),
    ("time_as_seconds", time_as_seconds),
    ("close_lets_turn_run", close_lets_turn_run),
];

fn is_session_opening(m: &InterceptedLine<'_>) -> bool {
    m.connection.protocol_version > 0 && m.is_session_opening()
}

/// Gives the id of the second session to all later ones.
fn session_id_twice(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/new") {
        let id = m.get_str("/result/sessionId").to_owned();
        match m.increment("sessions") {
            1 => {}
            2 => m.remember("second", id),
            _ => {
                let second = m.recall("second");
                m.set("/result/sessionId", second);
            }
        }
    }
}

fn is_relative_path(value: &Value) -> bool {
    value.as_str().is_some_and(|path| !path.starts_with('/'))
}

fn cwd_of_the_first_session(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/new") && m.recall("cwd").is_null() {
        let cwd = m.request_params()["cwd"].clone();
        m.remember("cwd", cwd);
    } else if m.is_client_call("session/new")
        && m.recall("cwd").is_string()
        && m.get("/params/cwd").is_string()
    {
        let first = m.recall("cwd");
        if !is_relative_path(m.get("/params/cwd")) {
            m.set("/params/cwd", first);
        }
    }
}

/// Returns true for a complete MCP server: a URL for `http` and `sse`, else a command, args and env.
fn is_valid_server(server: &Value) -> bool {
    let named = server["name"].is_string();
    let listed = |key: &str| server[key].is_null() || server[key].is_array();
    match server["type"].as_str() {
        Some("http" | "sse") => named && server["url"].is_string() && listed("headers"),
        _ => {
            named
                && server["command"].is_string()
                && listed("args")
                && listed("env")
                && server.get("args").is_some()
                && server.get("env").is_some()
        }
    }
}

fn bad_mcp_server_skipped(m: &mut InterceptedLine<'_>) {
    if is_session_opening(m) {
        m.edit_array("/params/mcpServers", |servers| {
            servers.retain(is_valid_server);
        });
    }
}

/// Swaps the session ids of text chunks while prompts run in two sessions.
fn crosstalk(m: &mut InterceptedLine<'_>) {
    if m.update_kind() == "agent_message_chunk" {
        let session = m.session_id();
        let other = m
            .connection
            .pending_requests(Direction::ToAgent)
            .find_map(|open| {
                let running = open.params["sessionId"].as_str()?;
                (open.method == "session/prompt" && running != session).then(|| running.to_owned())
            });
        if let Some(other) = other {
            m.set("/params/sessionId", other);
        }
    }
}

const ROOTS: &str = "/params/additionalDirectories";

fn relative_root_dropped(m: &mut InterceptedLine<'_>) {
    if is_session_opening(m) && m.get(ROOTS).is_array() {
        let right = |root: &Value| root.as_str().is_some_and(|path| path.starts_with('/'));
        m.edit_array(ROOTS, |roots| roots.retain(right));
    } else if is_session_opening(m) && m.has(ROOTS) {
        m.set(ROOTS, json!([]));
    }
}

/// Gives a loaded or resumed session the root `/`.
fn roots_restored(m: &mut InterceptedLine<'_>) {
    let back = m.is_client_call("session/load") || m.is_client_call("session/resume");
    if back && m.get("/params").is_object() && m.get(ROOTS).as_array().is_none_or(Vec::is_empty) {
        m.set(ROOTS, json!(["/"]));
    }
}

/// Swaps the first root and the working directory.
fn relative_to_the_root(m: &mut InterceptedLine<'_>) {
    if is_session_opening(m)
        && let Some(root) = m.get("/params/additionalDirectories/0").as_str()
        && root.starts_with('/')
        && m.get("/params/cwd").is_string()
    {
        let root = root.to_owned();
        let cwd = m.get("/params/cwd").clone();
        m.set("/params/cwd", root);
        if let Some(first) = m
            .message_mut()
            .pointer_mut("/params/additionalDirectories/0")
        {
            *first = cwd;
        }
    }
}

/// Adds `/` to the roots.
fn no_bounds(m: &mut InterceptedLine<'_>) {
    let mut roots = m.get(ROOTS).as_array().cloned().unwrap_or_default();
    let right = roots
        .iter()
        .all(|root| root.is_string() && !is_relative_path(root));
    if m.is_client_call("session/new") && m.get("/params/cwd").is_string() && right {
        roots.push(json!("/"));
        m.set(ROOTS, roots);
    }
}

/// Replaces the session by a new one with the old id after `method`.
fn lose_context_after(m: &mut InterceptedLine<'_>, method: &str) {
    if m.is_agent_result(method) {
        let asked = m.request_params().clone();
        m.remember("old", asked["sessionId"].clone());
        m.remember("new", Value::Null);
        let params = json!({"cwd": asked["cwd"], "mcpServers": asked["mcpServers"]});
        m.inject_request(Direction::ToAgent, "session/new", params);
    } else if m.direction == Direction::ToAgent
        && !m.recall("old").is_null()
        && m.recall("new").is_null()
        && m.get("/params/sessionId") == &m.recall("old")
    {
        m.hold();
    } else {
        forward_to_new_session(m);
    }
}

/// Moves the traffic of the session remembered as `old` to the injected one remembered as `new`, and sends the held
/// lines to the latter once it is created.
pub(super) fn forward_to_new_session(m: &mut InterceptedLine<'_>) {
    if m.answered_method(true) == "session/new" {
        let new = m.get("/result/sessionId").clone();
        for mut message in std::mem::take(&mut m.memory.held) {
            message["params"]["sessionId"] = new.clone();
            m.send_after(Direction::ToAgent, message);
        }
        m.remember("new", new);
        return;
    }
    let (from, to) = match m.direction {
        Direction::ToAgent => (m.recall("old"), m.recall("new")),
        Direction::ToClient => (m.recall("new"), m.recall("old")),
    };
    if !from.is_null() && !to.is_null() && m.get("/params/sessionId") == &from {
        m.set("/params/sessionId", to);
    }
}

fn loaded_without_context(m: &mut InterceptedLine<'_>) {
    lose_context_after(m, "session/load");
}

fn resumed_without_context(m: &mut InterceptedLine<'_>) {
    lose_context_after(m, "session/resume");
}

fn edit_sessions(m: &mut InterceptedLine<'_>, change: impl Fn(&mut Value)) {
    if m.is_agent_result("session/list") {
        m.edit_array("/result/sessions", |sessions| {
            sessions.iter_mut().for_each(change);
        });
    }
}

fn list_touches_sessions(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/list") {
        let second = m.increment("lists") % 60;
        edit_sessions(m, |session| {
            session["updatedAt"] = json!(format!("2099-01-01T00:00:{second:02}Z"));
        });
    }
}

fn time_as_seconds(m: &mut InterceptedLine<'_>) {
    edit_sessions(m, |session| {
        if session["updatedAt"].is_string() {
            session["updatedAt"] = json!("1795282800");
        }
    });
}

/// Answers a close at once, but closes the session only when its turn has ended.
fn close_lets_turn_run(m: &mut InterceptedLine<'_>) {
    let session = m.session_id();
    if m.is_client_call("session/close") && m.connection.running_prompt(&session).is_some() {
        m.respond(json!({}));
        m.remember("close", session);
    } else if m.is_agent_response("session/prompt") && m.recall("close") == json!(session) {
        let params = json!({"sessionId": session});
        m.inject_request(Direction::ToAgent, "session/close", params);
    }
}
