//! Serves a connection: classifies lines, routes requests, sends responses and updates in order.

pub(crate) mod acp_version;
pub(crate) mod command_updates;
pub(crate) mod connection;
pub(crate) mod dispatch;
pub(crate) mod encoder;
pub(crate) mod envelope;
pub(crate) mod login;
pub(crate) mod mcp_server_reports;
pub(crate) mod method_call;
pub(crate) mod model_list_updates;
pub(crate) mod outbox;
pub(crate) mod params;
pub(crate) mod prompt_barrier;
pub(crate) mod prompt_content;
pub(crate) mod rpc_error;
pub(crate) mod serve;
pub(crate) mod session_updates;
