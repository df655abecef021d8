//! Faults of MCP servers: which are started, and with what.

use super::{Fault, passing::Passing};
use serde_json::{Value, json};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("mcp_ignored", mcp_ignored),
    Fault::lines("mcp_http_ignored", mcp_http_ignored),
    Fault::lines("mcp_first_only", mcp_first_only),
    Fault::lines("mcp_unadvertised_dropped", mcp_unadvertised_dropped),
    Fault::lines("mcp_env_lost", mcp_env_lost),
    Fault::lines("mcp_args_split", mcp_args_split),
    Fault::lines("mcp_failure_sinks_session", mcp_failure_sinks_session),
    Fault::lines("mcp_not_reconnected", mcp_not_reconnected),
];

const SERVERS: &str = "/params/mcpServers";

fn opens(m: &Passing<'_>) -> bool {
    m.client_says("session/new") || m.client_says("session/load") || m.client_says("session/resume")
}

fn servers(m: &Passing<'_>) -> Vec<Value> {
    m.get(SERVERS).as_array().cloned().unwrap_or_default()
}

fn keep_servers(m: &mut Passing<'_>, right: impl Fn(&Value) -> bool) {
    let all = servers(m);
    let kept: Vec<_> = all.iter().filter(|server| right(server)).cloned().collect();
    if opens(m) && kept.len() < all.len() {
        m.set(SERVERS, kept);
    }
}

/// A server over stdio with all that it needs; the others are left for the agent to judge.
fn is_stdio(server: &Value) -> bool {
    server["command"].is_string() && server["args"].is_array() && server["env"].is_array()
}

fn mcp_ignored(m: &mut Passing<'_>) {
    keep_servers(m, |server| !is_stdio(server));
}

fn mcp_http_ignored(m: &mut Passing<'_>) {
    let advertised = m.wire.agent["mcpCapabilities"]["http"] == true;
    keep_servers(m, |server| !(advertised && server["type"] == "http"));
}

fn mcp_first_only(m: &mut Passing<'_>) {
    let all = servers(m);
    if opens(m) && all.len() > 1 && all.iter().all(is_stdio) {
        m.set(SERVERS, &all[..1]);
    }
}

fn mcp_unadvertised_dropped(m: &mut Passing<'_>) {
    let can = m.wire.agent["mcpCapabilities"].clone();
    keep_servers(m, |server| match server["type"].as_str() {
        Some(kind @ ("http" | "sse")) => can[kind] == true,
        _ => true,
    });
}

fn each_server(m: &mut Passing<'_>, change: impl Fn(&mut Value)) {
    if opens(m) && servers(m).iter().any(is_stdio) {
        let mut all = servers(m);
        all.iter_mut()
            .filter(|server| is_stdio(server))
            .for_each(change);
        m.set(SERVERS, all);
    }
}

fn mcp_env_lost(m: &mut Passing<'_>) {
    each_server(m, |server| server["env"] = json!([]));
}

/// Arguments are cut at blanks, as by a shell.
fn mcp_args_split(m: &mut Passing<'_>) {
    each_server(m, |server| {
        let args = server["args"].as_array().cloned().unwrap_or_default();
        let split = args.iter().filter_map(Value::as_str);
        let split = split.flat_map(str::split_whitespace);
        server["args"] = split.collect();
    });
}

fn mcp_failure_sinks_session(m: &mut Passing<'_>) {
    let dead = servers(m).iter().any(|server| {
        let command = server["command"].as_str().unwrap_or_default();
        is_stdio(server) && command.starts_with('/') && !std::path::Path::new(command).exists()
    });
    if opens(m) && dead {
        m.refuse(-32603, "an MCP server did not start");
    }
}

fn mcp_not_reconnected(m: &mut Passing<'_>) {
    if !m.client_says("session/new") {
        keep_servers(m, |server| !is_stdio(server));
    }
}
