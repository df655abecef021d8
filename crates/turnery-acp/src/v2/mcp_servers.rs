//! Parses the MCP servers of a v2 client by converting them to the v1 types.

use crate::server::rpc_error::RpcError;
use agent_client_protocol_schema::{v1, v2};

/// Parses the servers; rejects unknown transports (V2-18).
pub(super) fn parse_servers(servers: Vec<v2::McpServer>) -> Result<Vec<v1::McpServer>, RpcError> {
    servers.into_iter().map(to_v1_server).collect()
}

fn to_v1_server(server: v2::McpServer) -> Result<v1::McpServer, RpcError> {
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
        v2::McpServer::Other(it) => Err(unsupported_transport_error(&it.type_)),
        _ => Err(unsupported_transport_error("that")),
    }
}

fn unsupported_transport_error(transport: &str) -> RpcError {
    RpcError::invalid_params(format!(
        "mcpServers: {transport:?} is not a transport that this agent supports; see capabilities.session.mcp."
    ))
}
