//! Parses the MCP servers of a v1 client.

use crate::server::{params::check_absolute, rpc_error::RpcError};
use agent_client_protocol_schema::v1::McpServer as WireServer;
use turnery_tools::mcp::{McpServer, McpTransport};

/// Parses a server from the wire; its command, arguments, headers and environment are kept unchanged (MCP-1,
/// MCP-2, MCP-5).
pub(crate) fn parse_server(server: &WireServer) -> Result<McpServer, RpcError> {
    let (name, way) = match server {
        WireServer::Stdio(server) => {
            check_absolute("mcpServers: command", &server.command)?;
            let env = server.env.iter();
            let way = McpTransport::Stdio {
                command: server.command.clone(),
                args: server.args.clone(),
                env: env.map(|it| (it.name.clone(), it.value.clone())).collect(),
            };
            (&server.name, way)
        }
        WireServer::Http(server) => {
            let headers = server.headers.iter();
            let way = McpTransport::Http {
                url: server.url.clone(),
                headers: headers
                    .map(|it| (it.name.clone(), it.value.clone()))
                    .collect(),
            };
            (&server.name, way)
        }
        WireServer::Sse(server) => return Err(unsupported_transport_error(&server.name, "sse")),
        _ => {
            return Err(unsupported_transport_error(
                "a server",
                "an unknown transport",
            ));
        }
    };
    Ok(McpServer {
        name: name.clone(),
        transport: way,
        timeout: None,
    })
}

fn unsupported_transport_error(name: &str, transport: &str) -> RpcError {
    RpcError::invalid_params(format!(
        "mcpServers: {name} uses {transport}, which this agent does not support; \
         see mcpCapabilities."
    ))
}
