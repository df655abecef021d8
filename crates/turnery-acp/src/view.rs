//! Encoding that both protocol versions share.

pub(crate) mod code_fence;
pub(crate) mod meta;
pub(crate) mod rfc3339;
pub(crate) mod session_options;
pub(crate) mod shared_encoders;
pub(crate) mod stop_reason;
pub(crate) mod tool_call;
