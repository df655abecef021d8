//! `session/resume`: opens a stored session. What was said in it, if that is asked for, then its state,
//! then the answer (V2-10).

use crate::{
    fault::{Fault, parse},
    methods::{Call, setup::Setup},
    serve::send,
    update::UpdateWriter,
    v2::{options, servers, state},
};
use agent_client_protocol_schema::v2::{ReplayFrom, ResumeSessionRequest, ResumeSessionResponse};

pub(super) async fn answer(call: Call) -> Result<ResumeSessionResponse, Fault> {
    let request: ResumeSessionRequest = parse(&call.params)?;
    let replay = match request.replay_from {
        None => false,
        Some(ReplayFrom::Start(_)) => true,
        // A cursor that nobody knows is not exchanged for another one.
        Some(_) => {
            return Err(Fault::params(
                "replayFrom: the only place to replay from is {\"type\": \"start\"}.",
            ));
        }
    };
    let roots = request.additional_directories.into_iter();
    let setup = Setup::check(
        request.cwd.into_inner(),
        roots.map(|root| root.into_inner()).collect(),
        &servers::from_wire(request.mcp_servers)?,
    )?;
    let session = setup.open(&call, &request.session_id.0, replay).await?;
    // It was opened just now, so nothing runs in it, and its replay is in the queue.
    let mut to = UpdateWriter::new(session.id().as_str());
    state::at_rest(&mut to);
    send(call.connection.peer.out(), to.lines).await;
    Ok(ResumeSessionResponse::new()
        .config_options(options::config(&session.options()))
        .meta(crate::options::meta(&session.options()))
        .available_commands(options::commands(&session.options(), &[])))
}
