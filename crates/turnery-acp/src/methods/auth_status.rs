//! `auth/status` (unstable, capability `auth.status`): reports whether the client is authenticated, or needs
//! to be, for the session it most likely opens next. Changes nothing and never starts a login.

use crate::server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError};
use agent_client_protocol_schema::v1::{AuthState, AuthStatusRequest, AuthStatusResponse};
use turnery_agent::OpenError;

pub(super) async fn handle(call: MethodCall) -> Result<AuthStatusResponse, RpcError> {
    let _: AuthStatusRequest = parse_params(&call.params)?;
    Ok(AuthStatusResponse::new(auth_state(&call)))
}

fn auth_state(call: &MethodCall) -> AuthState {
    let connection = &call.connection;
    if connection.check_logged_in().is_err() {
        return AuthState::Unauthenticated;
    }
    let Some(request) = connection.likely_open_request() else {
        return AuthState::Unknown;
    };
    let agent = &connection.agent;
    match agent
        .check_model_key(&request)
        .and_then(|()| agent.has_key(&request))
    {
        Ok(true) => AuthState::Authenticated,
        Ok(false) => AuthState::NotRequired,
        Err(OpenError::Key(_)) => AuthState::Unauthenticated,
        Err(error) => {
            tracing::debug!("cannot tell whether a login is needed: {error}");
            AuthState::Unknown
        }
    }
}
