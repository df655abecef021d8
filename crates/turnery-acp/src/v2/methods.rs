//! The table of requests a v2 client may send. Methods that v2 removed are not in it (V2-18).

pub(crate) mod initialize;
mod session_list;
mod session_new;
mod session_prompt;
mod session_queue;
mod session_resume;
mod session_set_config_option;

use crate::{
    methods::{session_close, session_delete},
    server::{connection::Connection, method_call::register},
};
use agent_client_protocol_schema::v2::AGENT_METHOD_NAMES;
use jsonrpsee::{Methods, RpcModule};
use std::sync::Arc;

/// Builds the method table with all requests.
pub(crate) fn method_table(connection: Arc<Connection>) -> Methods {
    let names = AGENT_METHOD_NAMES;
    let mut table = RpcModule::from_arc(connection);
    register(&mut table, names.initialize, initialize::handle);
    register(&mut table, names.session_new, session_new::handle);
    register(&mut table, names.session_resume, session_resume::handle);
    register(&mut table, names.session_list, session_list::handle);
    register(&mut table, names.session_close, session_close::handle);
    register(&mut table, names.session_delete, session_delete::handle);
    register(&mut table, names.session_prompt, session_prompt::handle);
    register(&mut table, session_queue::QUEUE, session_queue::handle);
    register(
        &mut table,
        names.session_set_config_option,
        session_set_config_option::handle,
    );
    table.into()
}
