//! `initialize`, and which version is spoken (V2-1, V2-2).

use crate::{
    connection::{Abilities, Connection},
    dialect::Dialect,
    fault::{Fault, INVALID_REQUEST, parse},
    methods::Call,
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

/// No version at or below the one that was asked for.
const UNSUPPORTED_VERSION: i32 = -32022;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    protocol_version: u16,
}

/// The version that an `initialize` chooses: the highest at or below the one that is asked for. What
/// cannot be read is v1's to refuse. Once work has begun the choice stands.
pub(crate) fn negotiate(
    connection: &Connection,
    params: Option<&RawValue>,
) -> Result<Dialect, Fault> {
    match connection.settled() {
        Some(Dialect::V1) => return Ok(Dialect::V1),
        Some(Dialect::V2) => {
            return Err(Fault::new(
                INVALID_REQUEST,
                "The connection is at work already",
                "initialize may only be repeated before any other request.",
            ));
        }
        None => {}
    }
    let asked = params.and_then(|raw| serde_json::from_str::<Asked>(raw.get()).ok());
    match asked.map(|asked| asked.protocol_version) {
        None | Some(1) => Ok(Dialect::V1),
        Some(0) => Err(Fault::new(
            UNSUPPORTED_VERSION,
            "There is no such version of the protocol",
            "Ask for version 1 or 2.",
        )
        .with("requested", 0)
        .with("supported", json!([1, 2]))),
        Some(_) => Ok(Dialect::V2),
    }
}

/// Introduce ourselves. A later version's request need not parse: all of it but the number is ignored.
pub(super) async fn answer(call: Call) -> Result<InitializeResponse, Fault> {
    let asked: Asked = parse(&call.params)?;
    if asked.protocol_version == 2 {
        let _: InitializeRequest = parse(&call.params)?;
    }
    call.connection
        .initialize(Abilities::default(), Dialect::V2);
    let agent = Implementation::new("turnery", env!("CARGO_PKG_VERSION"));
    Ok(
        InitializeResponse::new(ProtocolVersion::V2, agent.title("turnery".to_owned()))
            .capabilities(capabilities(call.connection.agent.takes_audio())),
    )
}

/// Only what works. There is nothing to log in to, so there are no methods for it.
fn capabilities(audio: bool) -> AgentCapabilities {
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
    AgentCapabilities::new().session(session)
}
