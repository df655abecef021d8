//! `session/new`: makes a session, and says what it offers.

use crate::{
    fault::{Fault, parse},
    methods::{Call, setup::Setup},
    v2::{options, servers},
};
use agent_client_protocol_schema::v2::{NewSessionRequest, NewSessionResponse};

pub(super) async fn answer(call: Call) -> Result<NewSessionResponse, Fault> {
    let request: NewSessionRequest = parse(&call.params)?;
    let roots = request.additional_directories.into_iter();
    let setup = Setup::check(
        request.cwd.into_inner(),
        roots.map(|root| root.into_inner()).collect(),
        &servers::from_wire(request.mcp_servers)?,
    )?;
    let session = setup.create(&call).await?;
    Ok(NewSessionResponse::new(session.id().as_str())
        .config_options(options::config(&session.options()))
        .meta(crate::options::meta(&session.options()))
        .available_commands(options::commands(&session.options(), &[])))
}
