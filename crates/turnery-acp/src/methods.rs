//! The table of requests and notifications a client may send. One file per method.

mod auth_status;
mod authenticate;
mod cancel;
mod initialize;
mod logout;
pub(crate) mod prompt_start;
mod session_archive;
pub(crate) mod session_close;
pub(crate) mod session_delete;
mod session_fork;
mod session_interject;
mod session_list;
mod session_load;
mod session_new;
mod session_ports;
mod session_prompt;
mod session_resume;
mod session_set_config_option;
mod session_set_mode;
mod session_set_title;
pub(crate) mod session_setup;
mod session_status;
mod system_prompt;

use crate::server::{connection::Connection, method_call::register};
use agent_client_protocol_schema::v1::{
    AGENT_METHOD_NAMES, PROTOCOL_LEVEL_METHOD_NAMES, RequestId,
};
use jsonrpsee::{Methods, RpcModule};
use serde_json::value::RawValue;
use std::sync::Arc;

/// Method that must come first (INIT-12).
pub(crate) const INITIALIZE: &str = AGENT_METHOD_NAMES.initialize;

/// Requests whose work may be dropped half-done when the client cancels them (REQC-2). A prompt is not among
/// them: it ends by its own rules, with `cancelled`.
pub(crate) const DROPPABLE_METHODS: [&str; 5] = [
    AGENT_METHOD_NAMES.authenticate,
    AGENT_METHOD_NAMES.session_new,
    AGENT_METHOD_NAMES.session_load,
    AGENT_METHOD_NAMES.session_resume,
    AGENT_METHOD_NAMES.session_list,
];

/// Builds the method table with all requests.
pub(crate) fn method_table(connection: Arc<Connection>) -> Methods {
    let names = AGENT_METHOD_NAMES;
    let mut table = RpcModule::from_arc(connection);
    register(&mut table, names.initialize, initialize::handle);
    register(&mut table, names.authenticate, authenticate::handle);
    register(&mut table, names.logout, logout::handle);
    register(&mut table, names.session_new, session_new::handle);
    register(&mut table, names.session_load, session_load::handle);
    register(&mut table, names.session_resume, session_resume::handle);
    register(&mut table, names.session_fork, session_fork::handle);
    register(&mut table, names.session_list, session_list::handle);
    register(&mut table, names.session_close, session_close::handle);
    register(&mut table, names.session_delete, session_delete::handle);
    register(&mut table, names.session_prompt, session_prompt::handle);
    register(&mut table, names.session_set_mode, session_set_mode::handle);
    register(
        &mut table,
        names.session_set_config_option,
        session_set_config_option::handle,
    );
    register(
        &mut table,
        names.session_set_title,
        session_set_title::handle,
    );
    register(
        &mut table,
        names.session_archive,
        session_archive::handle_archive,
    );
    register(
        &mut table,
        names.session_unarchive,
        session_archive::handle_unarchive,
    );
    register(&mut table, names.auth_status, auth_status::handle);
    register(&mut table, names.session_status, session_status::handle);
    register(
        &mut table,
        session_interject::STEER,
        session_interject::handle_steer,
    );
    register(
        &mut table,
        session_interject::FOLLOW_UP,
        session_interject::handle_follow_up,
    );
    table.into()
}

/// Action the connection takes after a notification.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotificationAction {
    /// No action.
    Nothing,
    /// Cancel the request with this id.
    CancelRequest(RequestId),
}

/// Handles a notification. Unknown and malformed ones are ignored (RPC-5, RPC-20).
pub(crate) fn handle_notification(
    connection: &Connection,
    method: &str,
    params: Option<&RawValue>,
) -> NotificationAction {
    if method == AGENT_METHOD_NAMES.session_cancel {
        cancel::handle_session_cancel(connection, params);
    } else if method == PROTOCOL_LEVEL_METHOD_NAMES.cancel_request {
        return cancel::parse_cancel_request(params).map_or(
            NotificationAction::Nothing,
            NotificationAction::CancelRequest,
        );
    } else {
        tracing::debug!(method, "an unknown notification was ignored");
    }
    NotificationAction::Nothing
}
