//! Faults of MCP servers: the servers connected, and their arguments and variables.

use super::{fault::LineFunction, intercepted_line::InterceptedLine};
use serde_json::{Value, json};

pub(super) const FUNCTIONS: &[LineFunction] = &[
    ("mcp_ignored", mcp_ignored),
    ("mcp_http_ignored", mcp_http_ignored),
    ("mcp_first_only", mcp_first_only),
    ("mcp_unadvertised_dropped", mcp_unadvertised_dropped),
    ("mcp_env_lost", mcp_env_lost),
    ("mcp_args_split", mcp_args_split),
    ("mcp_failure_sinks_session", mcp_failure_sinks_session),
    ("mcp_not_reconnected", mcp_not_reconnected),
];

const SERVERS: &str = "/params/mcpServers";

fn mcp_servers(m: &InterceptedLine<'_>) -> Vec<Value> {
    m.get(SERVERS).as_array().cloned().unwrap_or_default()
}

fn retain_servers(m: &mut InterceptedLine<'_>, right: impl Fn(&Value) -> bool) {
    if m.is_session_opening() {
        m.edit_array(SERVERS, |servers| servers.retain(right));
    }
}

/// Returns true for a complete stdio server; other servers are left to the agent.
fn is_valid_stdio_server(server: &Value) -> bool {
    server["command"].is_string() && server["args"].is_array() && server["env"].is_array()
}

fn mcp_ignored(m: &mut InterceptedLine<'_>) {
    retain_servers(m, |server| !is_valid_stdio_server(server));
}

fn mcp_http_ignored(m: &mut InterceptedLine<'_>) {
    let advertised = m.connection.agent_capabilities["mcpCapabilities"]["http"] == true;
    retain_servers(m, |server| !(advertised && server["type"] == "http"));
}

fn mcp_first_only(m: &mut InterceptedLine<'_>) {
    let all = mcp_servers(m);
    if m.is_session_opening() && all.len() > 1 && all.iter().all(is_valid_stdio_server) {
        m.set(SERVERS, &all[..1]);
    }
}

fn mcp_unadvertised_dropped(m: &mut InterceptedLine<'_>) {
    let can = m.connection.agent_capabilities["mcpCapabilities"].clone();
    retain_servers(m, |server| match server["type"].as_str() {
        Some(kind @ ("http" | "sse")) => can[kind] == true,
        _ => true,
    });
}

fn edit_stdio_servers(m: &mut InterceptedLine<'_>, change: impl Fn(&mut Value)) {
    if m.is_session_opening() {
        m.edit_array(SERVERS, |servers| {
            let stdio_servers = servers.iter_mut().filter(|it| is_valid_stdio_server(it));
            stdio_servers.for_each(change);
        });
    }
}

fn mcp_env_lost(m: &mut InterceptedLine<'_>) {
    edit_stdio_servers(m, |server| server["env"] = json!([]));
}

/// Splits arguments at blanks, as a shell does.
fn mcp_args_split(m: &mut InterceptedLine<'_>) {
    edit_stdio_servers(m, |server| {
        let args = server["args"].as_array().cloned().unwrap_or_default();
        let split = args.iter().filter_map(Value::as_str);
        let split = split.flat_map(str::split_whitespace);
        server["args"] = split.collect();
    });
}

fn mcp_failure_sinks_session(m: &mut InterceptedLine<'_>) {
    let dead = mcp_servers(m).iter().any(|server| {
        let command = server["command"].as_str().unwrap_or_default();
        is_valid_stdio_server(server)
            && command.starts_with('/')
            && !std::path::Path::new(command).exists()
    });
    if m.is_session_opening() && dead {
        m.respond_error(-32603, "an MCP server did not start");
    }
}

fn mcp_not_reconnected(m: &mut InterceptedLine<'_>) {
    if !m.is_client_call("session/new") {
        retain_servers(m, |server| !is_valid_stdio_server(server));
    }
}
