//! Servers: the MCP servers that a v2 client gives. How they are reached is the same in both versions.

use crate::fault::Fault;
use agent_client_protocol_schema::{v1, v2};

/// Each of them; a transport that nobody knows refuses the request (V2-18).
pub(super) fn from_wire(servers: Vec<v2::McpServer>) -> Result<Vec<v1::McpServer>, Fault> {
    servers.into_iter().map(server).collect()
}

fn server(server: v2::McpServer) -> Result<v1::McpServer, Fault> {
    match server {
        v2::McpServer::Stdio(it) => {
            let variable = |it: v2::EnvVariable| v1::EnvVariable::new(it.name, it.value);
            Ok(v1::McpServer::Stdio(
                v1::McpServerStdio::new(it.name, it.command.into_inner())
                    .args(it.args)
                    .env(it.env.into_iter().map(variable).collect()),
            ))
        }
        v2::McpServer::Http(it) => {
            let header = |it: v2::HttpHeader| v1::HttpHeader::new(it.name, it.value);
            let headers = it.headers.into_iter().map(header).collect();
            Ok(v1::McpServer::Http(
                v1::McpServerHttp::new(it.name, it.url).headers(headers),
            ))
        }
        v2::McpServer::Other(it) => Err(unknown(&it.type_)),
        _ => Err(unknown("that")),
    }
}

fn unknown(transport: &str) -> Fault {
    Fault::params(format!(
        "mcpServers: {transport:?} is no transport that this agent supports; see capabilities.session.mcp."
    ))
}
