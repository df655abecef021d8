//! Faults of sessions: their ids, folders, roots, and who hears of them.

use super::{Fault, Way, passing::Passing};
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

const OPENING: [&str; 3] = ["session/new", "session/load", "session/resume"];

fn opens(m: &Passing<'_>) -> bool {
    m.wire.version > 0 && OPENING.iter().any(|method| m.client_says(method))
}

/// The third session and all after it have the id of the second.
fn session_id_twice(m: &mut Passing<'_>) {
    if m.grants("session/new") {
        let id = m.text("/result/sessionId").to_owned();
        match m.count("sessions") {
            1 => {}
            2 => m.keep("second", id),
            _ => {
                let second = m.note("second");
                m.set("/result/sessionId", second);
            }
        }
    }
}

fn is_relative(value: &Value) -> bool {
    value.as_str().is_some_and(|path| !path.starts_with('/'))
}

fn relative_cwd_taken(m: &mut Passing<'_>) {
    if opens(m) && is_relative(m.get("/params/cwd")) {
        m.set("/params/cwd", "/tmp");
    }
}

fn missing_cwd_guessed(m: &mut Passing<'_>) {
    if m.client_says("session/new") && m.get("/params").is_object() && !m.has("/params/cwd") {
        m.set("/params/cwd", "/tmp");
    }
}

fn cwd_of_the_first_session(m: &mut Passing<'_>) {
    if m.grants("session/new") && m.note("cwd").is_null() {
        let cwd = m.asked()["cwd"].clone();
        m.keep("cwd", cwd);
    } else if m.client_says("session/new")
        && m.note("cwd").is_string()
        && m.get("/params/cwd").is_string()
    {
        let first = m.note("cwd");
        if !is_relative(m.get("/params/cwd")) {
            m.set("/params/cwd", first);
        }
    }
}

fn mcp_servers_key_optional(m: &mut Passing<'_>) {
    let load = m.client_says("session/new") || m.client_says("session/load");
    if load && m.get("/params").is_object() && m.get("/params").get("mcpServers").is_none() {
        m.set("/params/mcpServers", json!([]));
    }
}

/// A server with a transport has an url; one without has a command, args and env.
fn is_right_server(server: &Value) -> bool {
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

fn bad_mcp_server_skipped(m: &mut Passing<'_>) {
    if opens(m)
        && let Some(servers) = m.get("/params/mcpServers").as_array()
    {
        let right: Vec<_> = servers
            .iter()
            .filter(|s| is_right_server(s))
            .cloned()
            .collect();
        if right.len() < servers.len() {
            m.set("/params/mcpServers", right);
        }
    }
}

/// While prompts run in two sessions, text comes under the name of the other one.
fn crosstalk(m: &mut Passing<'_>) {
    if m.update() == "agent_message_chunk" {
        let session = m.session();
        let other = m.wire.open(Way::ToAgent).find_map(|open| {
            let running = open.params["sessionId"].as_str()?;
            (open.method == "session/prompt" && running != session).then(|| running.to_owned())
        });
        if let Some(other) = other {
            m.set("/params/sessionId", other);
        }
    }
}

/// The answer waits until the first update of the session has been sent.
fn news_before_session_new_answer(m: &mut Passing<'_>) {
    // In the second version nothing need follow that would set it free.
    if m.grants("session/new") && m.wire.version != 2 {
        m.hold();
    } else if m.way == Way::ToClient {
        m.release();
    }
}

fn unknown_session_internal_error(m: &mut Passing<'_>) {
    if m.fails_with(-32002) && m.asked()["sessionId"].is_string() {
        m.set("/error/code", -32603);
    }
}

fn unknown_session_unnamed(m: &mut Passing<'_>) {
    if m.fails_with(-32002) {
        m.unset("/error/data");
    }
}

/// A prompt to a session that is not open here is answered as if it were.
fn any_session_prompted(m: &mut Passing<'_>) {
    let open = m.wire.sessions.contains(&m.session());
    if m.client_says("session/prompt") && m.wire.version == 1 && !open {
        m.respond(json!({"stopReason": "end_turn"}));
    }
}

const ROOTS: &str = "/params/additionalDirectories";

fn relative_root_dropped(m: &mut Passing<'_>) {
    if opens(m)
        && let Some(roots) = m.get(ROOTS).as_array()
    {
        let right = |root: &&Value| root.as_str().is_some_and(|path| path.starts_with('/'));
        let kept: Vec<_> = roots.iter().filter(right).cloned().collect();
        if kept.len() < roots.len() {
            m.set(ROOTS, kept);
        }
    } else if opens(m) && m.has(ROOTS) {
        m.set(ROOTS, json!([]));
    }
}

/// A session that comes back reaches everywhere.
fn roots_restored(m: &mut Passing<'_>) {
    let back = m.client_says("session/load") || m.client_says("session/resume");
    if back && m.get("/params").is_object() && m.get(ROOTS).as_array().is_none_or(Vec::is_empty) {
        m.set(ROOTS, json!(["/"]));
    }
}

/// The first root and the working directory change places.
fn relative_to_the_root(m: &mut Passing<'_>) {
    if opens(m)
        && let Some(root) = m.get("/params/additionalDirectories/0").as_str()
        && root.starts_with('/')
        && m.get("/params/cwd").is_string()
    {
        let root = root.to_owned();
        let cwd = m.get("/params/cwd").clone();
        m.set("/params/cwd", root);
        if let Some(first) = m.edit().pointer_mut("/params/additionalDirectories/0") {
            *first = cwd;
        }
    }
}

/// The whole disk is one of the roots.
fn no_bounds(m: &mut Passing<'_>) {
    let mut roots = m.get(ROOTS).as_array().cloned().unwrap_or_default();
    let right = roots
        .iter()
        .all(|root| root.is_string() && !is_relative(root));
    if m.client_says("session/new") && m.get("/params/cwd").is_string() && right {
        roots.push(json!("/"));
        m.set(ROOTS, roots);
    }
}

fn roots_ignored(m: &mut Passing<'_>) {
    if opens(m)
        && m.get(ROOTS)
            .as_array()
            .is_some_and(|roots| !roots.is_empty())
    {
        m.unset(ROOTS);
    }
}
