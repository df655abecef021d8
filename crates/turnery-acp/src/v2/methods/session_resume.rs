//! `session/resume`: opens a stored session. Sends the conversation if requested, then the state, then the
//! response (V2-10).

use crate::{
    methods::session_setup::SessionSetup,
    server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError},
    transport::{update_writer::UpdateWriter, writer::send_line},
    v2::{
        available_commands::list_available_commands, mcp_servers, session_state,
        shared::encode_config_options,
    },
    view::session_options::session_meta,
};
use agent_client_protocol_schema::v2::{ReplayFrom, ResumeSessionRequest, ResumeSessionResponse};

pub(super) async fn handle(call: MethodCall) -> Result<ResumeSessionResponse, RpcError> {
    let request: ResumeSessionRequest = parse_params(&call.params)?;
    let replay = match request.replay_from {
        None => false,
        Some(ReplayFrom::Start(_)) => true,
        // An unknown cursor must not be replaced by another one.
        Some(_) => {
            return Err(RpcError::invalid_params(
                "replayFrom: the only place to replay from is {\"type\": \"start\"}.",
            ));
        }
    };
    let roots = request.additional_directories.into_iter();
    let setup = SessionSetup::from_params(
        request.cwd.into_inner(),
        roots.map(|root| root.into_inner()).collect(),
        &mcp_servers::parse_servers(request.mcp_servers)?,
        None,
    )?;
    let session = setup.open(&call, &request.session_id.0, replay).await?;
    // The session was just opened: nothing runs in it, and its replay is already queued.
    let mut to = UpdateWriter::new(session.id().as_str());
    session_state::write_idle(&mut to);
    send_line(call.connection.peer.out(), to.lines).await;
    let options = session.options();
    Ok(ResumeSessionResponse::new()
        .config_options(encode_config_options(&session))
        .meta(session_meta(&options))
        .available_commands(list_available_commands(&options, &[])))
}
