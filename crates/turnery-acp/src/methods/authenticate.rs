//! `authenticate`: says whether the keys that are there suffice (AUTH-4, AUTH-5). A key that was typed in a
//! terminal meanwhile is found here; for one that is missing the person is sent to a page, if that was asked for.

use super::Call;
use crate::{
    fault::{Fault, parse},
    key_page,
    login::{NONE, PAGE, TERMINAL},
};
use agent_client_protocol_schema::v1::{
    AuthenticateRequest, AuthenticateResponse, ElicitationRequestScope,
};

pub(super) async fn answer(call: Call) -> Result<AuthenticateResponse, Fault> {
    let request: AuthenticateRequest = parse(&call.params)?;
    let client = call.connection.abilities().logs_in;
    match &*request.method_id.0 {
        NONE => {}
        TERMINAL if client.terminal => {
            return Err(Fault::params(format!(
                "{TERMINAL:?} happens in a terminal of the client's, not here."
            )));
        }
        TERMINAL if client.dialect && call.connection.login().is_some() => {}
        PAGE if call.connection.pages().is_some() => missing_key(&call).await,
        other => {
            return Err(Fault::params(format!(
                "{other:?} is no login of this agent; see authMethods."
            )));
        }
    }
    call.connection.log_in()?;
    Ok(AuthenticateResponse::new())
}

/// Lets the person give the key that is missing, if one is.
async fn missing_key(call: &Call) {
    let connection = &call.connection;
    if let (Some(pages), Some(missing)) = (connection.pages(), connection.missing_key()) {
        let scope = ElicitationRequestScope::new(&call.scope.id);
        key_page::ask(&connection.peer, &pages, scope, &missing).await;
    }
}
