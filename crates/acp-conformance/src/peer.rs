//! Client side of a connection: the agent's process and the responses to its requests.

pub(crate) mod client;
pub(crate) mod process;
pub(crate) mod queue;
pub(crate) mod terminals;
