//! `session/new`: makes a session. It is stored before the answer, so another process can resume it.

use super::{Call, setup::Setup};
use crate::{
    fault::{Fault, parse},
    options,
};
use agent_client_protocol_schema::v1::{NewSessionRequest, NewSessionResponse};

pub(super) async fn answer(call: Call) -> Result<NewSessionResponse, Fault> {
    let request: NewSessionRequest = parse(&call.params)?;
    let setup = Setup::check(
        request.cwd,
        request.additional_directories,
        &request.mcp_servers,
    )?
    .telling(request.system_prompt)?;
    let session = setup.create(&call).await?;
    let options = session.options();
    Ok(NewSessionResponse::new(session.id().to_string())
        .modes(options::modes(&options))
        .config_options(options::config(&options))
        .meta(options::meta(&options)))
}
