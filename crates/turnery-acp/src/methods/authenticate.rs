//! `authenticate`: there is one login, and it needs nothing (AUTH-4, AUTH-5).

use super::{Call, initialize::NO_LOGIN};
use crate::fault::{Fault, parse};
use agent_client_protocol_schema::v1::{AuthenticateRequest, AuthenticateResponse};

pub(super) async fn answer(call: Call) -> Result<AuthenticateResponse, Fault> {
    let request: AuthenticateRequest = parse(&call.params)?;
    if &*request.method_id.0 == NO_LOGIN {
        Ok(AuthenticateResponse::new())
    } else {
        Err(Fault::params(format!(
            "{:?} is no login of this agent: the only one is {NO_LOGIN:?}.",
            &*request.method_id.0
        )))
    }
}
