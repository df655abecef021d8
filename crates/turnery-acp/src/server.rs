//! Serves a connection: classifies lines, routes requests, sends responses and updates in order.

pub(crate) mod acp_version;
pub(crate) mod connection;
pub(crate) mod dispatch;
pub(crate) mod envelope;
pub(crate) mod login;
pub(crate) mod outbox;
pub(crate) mod prompt_barrier;
pub(crate) mod rpc_error;
pub(crate) mod serve;
