//! `initialize` on a connection that may use v2: selects the version (V2-1, V2-2), and responds with the agent's v2
//! capabilities if it is v2.

use super::session_queue::QUEUE;
use crate::{
    client::features::ClientFeatures,
    server::{
        acp_version::AcpVersion,
        connection::Connection,
        method_call::MethodCall,
        params::parse_params,
        rpc_error::{INVALID_REQUEST, RpcError},
    },
    view::meta::turnery_meta,
};
use agent_client_protocol_schema::{
    ProtocolVersion,
    v2::{
        AgentCapabilities, Implementation, InitializeRequest, InitializeResponse, McpCapabilities,
        McpHttpCapabilities, McpStdioCapabilities, PromptAudioCapabilities, PromptCapabilities,
        PromptEmbeddedContextCapabilities, PromptImageCapabilities,
        SessionAdditionalDirectoriesCapabilities, SessionCapabilities, SessionDeleteCapabilities,
    },
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

/// Error code: no supported version is at or below the requested one.
const UNSUPPORTED_VERSION: i32 = -32022;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestedVersion {
    protocol_version: u16,
}

/// Selects the version for an `initialize` request: the highest one not above the requested version.
/// Unreadable requests are left to v1 to reject. Once the version is fixed it no longer changes.
pub(crate) fn negotiate_version(
    connection: &Connection,
    params: Option<&RawValue>,
) -> Result<AcpVersion, RpcError> {
    match connection.fixed_version() {
        Some(AcpVersion::V1) => return Ok(AcpVersion::V1),
        Some(AcpVersion::V2) => {
            return Err(RpcError::new(
                INVALID_REQUEST,
                "The connection is already in use",
                "initialize may only be repeated before any other request.",
            ));
        }
        None => {}
    }
    let requested = params.and_then(|raw| serde_json::from_str::<RequestedVersion>(raw.get()).ok());
    match requested.map(|requested| requested.protocol_version) {
        None | Some(1) => Ok(AcpVersion::V1),
        Some(0) => Err(RpcError::new(
            UNSUPPORTED_VERSION,
            "The protocol version is not supported",
            "Ask for version 1 or 2.",
        )
        .with_data("requested", 0)
        .with_data("supported", json!([1, 2]))),
        Some(_) => Ok(AcpVersion::V2),
    }
}

/// Responds to `initialize`. A request for a later version need not parse: everything but its version is
/// ignored.
pub(super) async fn handle(call: MethodCall) -> Result<InitializeResponse, RpcError> {
    let requested: RequestedVersion = parse_params(&call.params)?;
    if requested.protocol_version == 2 {
        let _: InitializeRequest = parse_params(&call.params)?;
    }
    call.connection
        .initialize(ClientFeatures::default(), AcpVersion::V2);
    let agent = Implementation::new("turnery", env!("CARGO_PKG_VERSION"));
    Ok(
        InitializeResponse::new(ProtocolVersion::V2, agent.title("turnery".to_owned()))
            .capabilities(agent_capabilities(call.connection.agent.supports_audio())),
    )
}

/// Returns only capabilities that work. v2 has no login methods.
fn agent_capabilities(audio: bool) -> AgentCapabilities {
    let prompt = PromptCapabilities::new()
        .image(PromptImageCapabilities::new())
        .audio(audio.then(PromptAudioCapabilities::new))
        .embedded_context(PromptEmbeddedContextCapabilities::new());
    let mcp = McpCapabilities::new()
        .stdio(McpStdioCapabilities::new())
        .http(McpHttpCapabilities::new());
    let session = SessionCapabilities::new()
        .prompt(prompt)
        .mcp(mcp)
        .delete(SessionDeleteCapabilities::new())
        .additional_directories(SessionAdditionalDirectoriesCapabilities::new());
    AgentCapabilities::new()
        .session(session)
        .meta(turnery_meta(json!({"queue": QUEUE})))
}
