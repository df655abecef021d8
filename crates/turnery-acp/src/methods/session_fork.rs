//! `session/fork` (unstable, behind `sessionCapabilities.fork`): a new session that begins with the
//! stored history of another one, open or not. Nothing of it is shown: the client has it.

use super::{Call, setup::Setup};
use crate::{
    fault::{Fault, parse},
    options,
};
use agent_client_protocol_schema::v1::{ForkSessionRequest, ForkSessionResponse};

pub(super) async fn answer(call: Call) -> Result<ForkSessionResponse, Fault> {
    let request: ForkSessionRequest = parse(&call.params)?;
    let setup = Setup::check(
        request.cwd,
        request.additional_directories,
        &request.mcp_servers,
    )?
    .telling(request.system_prompt)?;
    let session = setup.fork(&call, &request.session_id.0).await?;
    let options = session.options();
    Ok(ForkSessionResponse::new(session.id().to_string())
        .modes(options::modes(&options))
        .config_options(options::config(&options))
        .meta(options::meta(&options)))
}
