//! `authenticate`: checks that the required keys exist (AUTH-4, AUTH-5). Finds keys entered in a terminal in
//! the meantime; the page method sends the user to a page for a missing one.

use crate::{
    client::key_page,
    server::{
        login::{KEY_PAGE_METHOD, NO_LOGIN_METHOD, TERMINAL_METHOD},
        method_call::MethodCall,
        params::parse_params,
        rpc_error::RpcError,
    },
};
use agent_client_protocol_schema::v1::{
    AuthenticateRequest, AuthenticateResponse, ElicitationRequestScope,
};

pub(super) async fn handle(call: MethodCall) -> Result<AuthenticateResponse, RpcError> {
    let request: AuthenticateRequest = parse_params(&call.params)?;
    let client = call.connection.client_features().login;
    match &*request.method_id.0 {
        NO_LOGIN_METHOD => {}
        TERMINAL_METHOD if client.terminal => {
            return Err(RpcError::invalid_params(format!(
                "{TERMINAL_METHOD:?} is run by the client in a terminal, not through authenticate."
            )));
        }
        TERMINAL_METHOD if client.terminal_meta && call.connection.login().is_some() => {}
        KEY_PAGE_METHOD if call.connection.key_page_opener().is_some() => {
            request_missing_key(&call).await
        }
        other => {
            return Err(RpcError::invalid_params(format!(
                "{other:?} is not a login method of this agent; see authMethods."
            )));
        }
    }
    call.connection.log_in()?;
    Ok(AuthenticateResponse::new())
}

/// Asks the user for the missing key, if there is one.
async fn request_missing_key(call: &MethodCall) {
    let connection = &call.connection;
    if let (Some(pages), Some(missing)) = (connection.key_page_opener(), connection.missing_key()) {
        let scope = ElicitationRequestScope::new(call.scope.id.clone());
        key_page::request_key(&connection.peer, &pages, scope, &missing).await;
    }
}
