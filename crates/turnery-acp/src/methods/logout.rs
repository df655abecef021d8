//! `logout`: forgets the keys that were typed in, and lets no session begin until somebody authenticates
//! again (AUTH-7). Sessions that are open stay so, and fail where they would need a key (AUTH-8).

use super::Call;
use crate::fault::{Fault, parse};
use agent_client_protocol_schema::v1::{LogoutRequest, LogoutResponse};

pub(super) async fn answer(call: Call) -> Result<LogoutResponse, Fault> {
    let _: LogoutRequest = parse(&call.params)?;
    if let Some(login) = call.connection.login() {
        (login.forget)().map_err(|why| {
            let details = format!("{why}. Delete that file by hand.");
            Fault::internal("keys", "The keys could not be forgotten", details, false)
        })?;
    }
    call.connection.log_out();
    Ok(LogoutResponse::new())
}
