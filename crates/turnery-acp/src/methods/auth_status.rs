//! `auth/status` (unstable, behind `auth.status`): whether a session could begin now. Changes nothing, and never
//! asks for a login itself.

use super::Call;
use crate::fault::{Fault, parse};
use agent_client_protocol_schema::v1::{AuthState, AuthStatusRequest, AuthStatusResponse};
use turnery_agent::OpenError;

pub(super) async fn answer(call: Call) -> Result<AuthStatusResponse, Fault> {
    let _: AuthStatusRequest = parse(&call.params)?;
    Ok(AuthStatusResponse::new(state(&call)))
}

fn state(call: &Call) -> AuthState {
    let connection = &call.connection;
    if connection.logged_in().is_err() {
        return AuthState::Unauthenticated;
    }
    let Some(request) = connection.likely_request() else {
        return AuthState::Unknown;
    };
    let agent = &connection.agent;
    match agent.ready(&request).and_then(|()| agent.has_key(&request)) {
        Ok(true) => AuthState::Authenticated,
        Ok(false) => AuthState::NotRequired,
        Err(OpenError::Key(_)) => AuthState::Unauthenticated,
        Err(error) => {
            tracing::debug!("whether a login is needed is not known: {error}");
            AuthState::Unknown
        }
    }
}
