//! Methods: the table of what a v2 client may ask. What v1 has and v2 has not is not in it (V2-18).

pub(crate) mod initialize;
mod session_list;
mod session_new;
mod session_prompt;
mod session_resume;
mod session_set_config_option;

use crate::{
    connection::Connection,
    methods::{add, session_close, session_delete},
};
use agent_client_protocol_schema::v2::AGENT_METHOD_NAMES;
use jsonrpsee::{Methods, RpcModule};
use std::sync::Arc;

/// All requests.
pub(crate) fn table(connection: Arc<Connection>) -> Methods {
    let names = AGENT_METHOD_NAMES;
    let mut table = RpcModule::from_arc(connection);
    add(&mut table, names.initialize, initialize::answer);
    add(&mut table, names.session_new, session_new::answer);
    add(&mut table, names.session_resume, session_resume::answer);
    add(&mut table, names.session_list, session_list::answer);
    add(&mut table, names.session_close, session_close::answer);
    add(&mut table, names.session_delete, session_delete::answer);
    add(&mut table, names.session_prompt, session_prompt::answer);
    add(
        &mut table,
        names.session_set_config_option,
        session_set_config_option::answer,
    );
    table.into()
}
