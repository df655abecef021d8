//! `authenticate`: says whether the keys that are there suffice (AUTH-4, AUTH-5). A key that was typed in a
//! terminal meanwhile is found here.

use super::Call;
use crate::{
    fault::{Fault, parse},
    login::{NONE, TERMINAL},
};
use agent_client_protocol_schema::v1::{AuthenticateRequest, AuthenticateResponse};

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
        other => {
            return Err(Fault::params(format!(
                "{other:?} is no login of this agent; see authMethods."
            )));
        }
    }
    call.connection.log_in()?;
    Ok(AuthenticateResponse::new())
}
