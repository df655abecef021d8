//! `session/resume`: opens a stored session and shows nothing of it (RES-1, RES-2).

use super::{Call, setup::Setup};
use crate::{
    fault::{Fault, parse},
    options,
};
use agent_client_protocol_schema::v1::{ResumeSessionRequest, ResumeSessionResponse};

pub(super) async fn answer(call: Call) -> Result<ResumeSessionResponse, Fault> {
    let request: ResumeSessionRequest = parse(&call.params)?;
    let setup = Setup::check(
        request.cwd,
        request.additional_directories,
        &request.mcp_servers,
    )?
    .telling(request.system_prompt)?;
    let session = setup.open(&call, &request.session_id.0, false).await?;
    let options = session.options();
    Ok(ResumeSessionResponse::new()
        .modes(options::modes(&options))
        .config_options(options::config(&options))
        .meta(options::meta(&options)))
}
