//! `initialize`: negotiates version and capabilities. Touches no disk and no network (INIT-14).

use super::session_interject::{FOLLOW_UP, STEER};
use crate::{
    client::{features::ClientFeatures, quirks::ClientQuirks},
    server::{
        acp_version::AcpVersion, login, method_call::MethodCall, params::parse_params,
        rpc_error::RpcError,
    },
    view::meta::turnery_meta,
};
use agent_client_protocol_schema::{
    ProtocolVersion,
    v1::{
        AgentAuthCapabilities, AgentCapabilities, AuthStatusCapabilities, ClientCapabilities,
        Implementation, InitializeResponse, LogoutCapabilities, McpCapabilities,
        PromptCapabilities, SessionAdditionalDirectoriesCapabilities, SessionArchiveCapabilities,
        SessionCapabilities, SessionCloseCapabilities, SessionDeleteCapabilities,
        SessionForkCapabilities, SessionListCapabilities, SessionResumeCapabilities,
        SessionStatusCapabilities, SessionSystemPromptCapabilities,
        SessionSystemPromptModeCapabilities, SessionSystemPromptOverrideCapabilities,
        SessionTitleCapabilities,
    },
};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeParams {
    /// Requested version; values outside 0..=65535 are rejected (INIT-5).
    protocol_version: u16,
    /// Client capabilities, read leniently: unparsable ones count as unsupported (INIT-9).
    #[serde(default)]
    client_capabilities: Value,
    /// Client name and version, read leniently.
    #[serde(default)]
    client_info: Value,
}

/// Responds with the supported version, whatever was requested (INIT-2, INIT-3). May be called again
/// (INIT-13).
pub(super) async fn handle(call: MethodCall) -> Result<InitializeResponse, RpcError> {
    let request: InitializeParams = parse_params(&call.params)?;
    let declared: ClientCapabilities =
        serde_json::from_value(request.client_capabilities).unwrap_or_default();
    let abilities = ClientFeatures {
        quirks: ClientQuirks::from_client_info(&request.client_info),
        ..ClientFeatures::from(declared)
    };
    tracing::debug!(version = request.protocol_version, ?abilities, "initialize");
    call.connection.initialize(abilities, AcpVersion::V1);
    let agent = Implementation::new("turnery", env!("CARGO_PKG_VERSION"));
    Ok(InitializeResponse::new(ProtocolVersion::V1)
        .agent_info(agent.title("turnery".to_owned()))
        .agent_capabilities(agent_capabilities(call.connection.agent.supports_audio()))
        .auth_methods(login::auth_methods(
            call.connection.login(),
            abilities.login,
        )))
}

/// Returns only capabilities that work (INIT-11).
fn agent_capabilities(audio: bool) -> AgentCapabilities {
    let override_too = SessionSystemPromptModeCapabilities::new()
        .override_(SessionSystemPromptOverrideCapabilities::new());
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new())
        .delete(SessionDeleteCapabilities::new())
        .fork(SessionForkCapabilities::new())
        .archive(SessionArchiveCapabilities::new())
        .status(SessionStatusCapabilities::new())
        .system_prompt(SessionSystemPromptCapabilities::new().mode(override_too))
        .title(SessionTitleCapabilities::new())
        .additional_directories(SessionAdditionalDirectoriesCapabilities::new());
    let prompt = PromptCapabilities::new()
        .image(true)
        .audio(audio)
        .embedded_context(true);
    AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(prompt)
        .mcp_capabilities(McpCapabilities::new().http(true))
        .session_capabilities(sessions)
        .auth(
            AgentAuthCapabilities::new()
                .logout(LogoutCapabilities::new())
                .status(AuthStatusCapabilities::new()),
        )
        .meta(turnery_meta(json!({
            "steer": STEER,
            "followUp": FOLLOW_UP,
            "outputSchema": true,
        })))
}
