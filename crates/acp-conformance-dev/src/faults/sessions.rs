//! Faults of sessions: ids, folders, roots and routing.

use super::{Direction, Fault, intercepted_line::InterceptedLine};
use serde_json::{Value, json};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("session_id_twice", session_id_twice),
    Fault::lines("relative_cwd_taken", relative_cwd_taken),
    Fault::lines("missing_cwd_guessed", missing_cwd_guessed),
    Fault::lines("cwd_of_the_first_session", cwd_of_the_first_session),
    Fault::lines("mcp_servers_key_optional", mcp_servers_key_optional),
    Fault::lines("bad_mcp_server_skipped", bad_mcp_server_skipped),
    Fault::lines("crosstalk", crosstalk),
    Fault::lines(
        "news_before_session_new_answer",
        news_before_session_new_answer,
    ),
    Fault::lines(
        "unknown_session_internal_error",
        unknown_session_internal_error,
    ),
    Fault::lines("unknown_session_unnamed", unknown_session_unnamed),
    Fault::lines("any_session_prompted", any_session_prompted),
    Fault::lines("relative_root_dropped", relative_root_dropped),
    Fault::lines("roots_restored", roots_restored),
    Fault::lines("relative_to_the_root", relative_to_the_root),
    Fault::lines("no_bounds", no_bounds),
    Fault::lines("roots_ignored", roots_ignored),
];

const OPENING_METHODS: [&str; 3] = ["session/new", "session/load", "session/resume"];

fn is_session_opening(m: &InterceptedLine<'_>) -> bool {
    m.connection.protocol_version > 0
        && OPENING_METHODS
            .iter()
            .any(|method| m.is_client_call(method))
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

fn relative_cwd_taken(m: &mut InterceptedLine<'_>) {
    if is_session_opening(m) && is_relative_path(m.get("/params/cwd")) {
        m.set("/params/cwd", "/tmp");
    }
}

fn missing_cwd_guessed(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("session/new") && m.get("/params").is_object() && !m.has("/params/cwd") {
        m.set("/params/cwd", "/tmp");
    }
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

fn mcp_servers_key_optional(m: &mut InterceptedLine<'_>) {
    let load = m.is_client_call("session/new") || m.is_client_call("session/load");
    if load && m.get("/params").is_object() && m.get("/params").get("mcpServers").is_none() {
        m.set("/params/mcpServers", json!([]));
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
    if is_session_opening(m)
        && let Some(servers) = m.get("/params/mcpServers").as_array()
    {
        let right: Vec<_> = servers
            .iter()
            .filter(|s| is_valid_server(s))
            .cloned()
            .collect();
        if right.len() < servers.len() {
            m.set("/params/mcpServers", right);
        }
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

/// Holds the response back until the agent's next message, such as the session's first update.
fn news_before_session_new_answer(m: &mut InterceptedLine<'_>) {
    // In version 2, no message need follow that would release the response.
    if m.is_agent_result("session/new") && m.connection.protocol_version != 2 {
        m.hold();
    } else if m.direction == Direction::ToClient {
        m.release();
    }
}

fn unknown_session_internal_error(m: &mut InterceptedLine<'_>) {
    if m.is_agent_error(-32002) && m.request_params()["sessionId"].is_string() {
        m.set("/error/code", -32603);
    }
}

fn unknown_session_unnamed(m: &mut InterceptedLine<'_>) {
    if m.is_agent_error(-32002) {
        m.remove("/error/data");
    }
}

/// Answers a prompt to a session that is not open.
fn any_session_prompted(m: &mut InterceptedLine<'_>) {
    let open = m.connection.open_sessions.contains(&m.session_id());
    if m.is_client_call("session/prompt") && m.connection.protocol_version == 1 && !open {
        m.respond(json!({"stopReason": "end_turn"}));
    }
}

const ROOTS: &str = "/params/additionalDirectories";

fn relative_root_dropped(m: &mut InterceptedLine<'_>) {
    if is_session_opening(m)
        && let Some(roots) = m.get(ROOTS).as_array()
    {
        let right = |root: &&Value| root.as_str().is_some_and(|path| path.starts_with('/'));
        let kept: Vec<_> = roots.iter().filter(right).cloned().collect();
        if kept.len() < roots.len() {
            m.set(ROOTS, kept);
        }
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

fn roots_ignored(m: &mut InterceptedLine<'_>) {
    if is_session_opening(m)
        && m.get(ROOTS)
            .as_array()
            .is_some_and(|roots| !roots.is_empty())
    {
        m.remove(ROOTS);
    }
}
