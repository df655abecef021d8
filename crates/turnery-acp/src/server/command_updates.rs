//! Encodes the list of a session's commands for the negotiated version.

use crate::{server::acp_version::AcpVersion, v1, v2};
use turnery_agent::Session;
use turnery_tools::mcp::McpPrompt;

/// Encodes the commands to send after the response that opened a session. Empty in v2, where the response
/// itself lists them.
pub(crate) fn encode_initial_commands(version: AcpVersion, session: &Session) -> Vec<u8> {
    match version {
        AcpVersion::V1 => v1::available_commands::encode_available_commands(session, &[]),
        AcpVersion::V2 => Vec::new(),
    }
}

/// Encodes the update that lists the commands, including prompts of MCP servers.
pub(crate) fn encode_commands(
    version: AcpVersion,
    session: &Session,
    prompts: &[McpPrompt],
) -> Vec<u8> {
    match version {
        AcpVersion::V1 => v1::available_commands::encode_available_commands(session, prompts),
        AcpVersion::V2 => v2::available_commands::encode_available_commands(session, prompts),
    }
}
