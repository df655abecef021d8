//! What the client is shown, independent of the protocol version.

pub(crate) mod prompt_usage;
pub(crate) mod session_cost;
pub(crate) mod stop_reason;
