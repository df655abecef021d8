//! Peer: the client's side of a connection: the agent's process, and what answers its requests.

pub(crate) mod client;
pub(crate) mod process;
pub(crate) mod queue;
pub(crate) mod terminals;
