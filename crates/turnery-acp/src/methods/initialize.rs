//! `initialize`: versions and capabilities. Touches no disk and no network (INIT-14).

use super::{
    Call,
    session_say::{FOLLOW_UP, STEER},
};
use crate::{
    connection::Abilities,
    dialect::Dialect,
    fault::{Fault, parse},
    login,
    news::meta,
    quirks::Quirks,
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
struct Request {
    /// Within 0..=65535, else refused (INIT-5).
    protocol_version: u16,
    /// Read leniently: what does not parse is not supported (INIT-9).
    #[serde(default)]
    client_capabilities: Value,
    /// Read leniently too.
    #[serde(default)]
    client_info: Value,
}

/// Any version is answered with the one that is spoken (INIT-2, INIT-3). May come again (INIT-13).
pub(super) async fn answer(call: Call) -> Result<InitializeResponse, Fault> {
    let request: Request = parse(&call.params)?;
    let said: ClientCapabilities =
        serde_json::from_value(request.client_capabilities).unwrap_or_default();
    let abilities = Abilities {
        quirks: Quirks::of(&request.client_info),
        ..Abilities::from(said)
    };
    tracing::debug!(version = request.protocol_version, ?abilities, "initialize");
    call.connection.initialize(abilities, Dialect::V1);
    let agent = Implementation::new("turnery", env!("CARGO_PKG_VERSION"));
    Ok(InitializeResponse::new(ProtocolVersion::V1)
        .agent_info(agent.title("turnery".to_owned()))
        .agent_capabilities(capabilities(call.connection.agent.takes_audio()))
        .auth_methods(login::methods(call.connection.login(), abilities.logs_in)))
}

/// Only what works (INIT-11).
fn capabilities(audio: bool) -> AgentCapabilities {
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
        .meta(meta(json!({"steer": STEER, "followUp": FOLLOW_UP})))
}
