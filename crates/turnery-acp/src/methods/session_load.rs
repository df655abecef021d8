//! `session/load`: opens a stored session and shows its whole conversation before the answer (LOAD-1, LOAD-2).

use super::{Call, setup::Setup};
use crate::{
    fault::{Fault, parse},
    options,
};
use agent_client_protocol_schema::v1::{LoadSessionRequest, LoadSessionResponse};

pub(super) async fn answer(call: Call) -> Result<LoadSessionResponse, Fault> {
    let request: LoadSessionRequest = parse(&call.params)?;
    let setup = Setup::check(
        request.cwd,
        request.additional_directories,
        &request.mcp_servers,
    )?
    .telling(request.system_prompt)?;
    let session = setup.open(&call, &request.session_id.0, true).await?;
    let options = session.options();
    Ok(LoadSessionResponse::new()
        .modes(options::modes(&options))
        .config_options(options::config(&options))
        .meta(options::meta(&options)))
}
