//! Lines on stdin and stdout.

pub(crate) mod reader;
pub(crate) mod stall_timer;
pub(crate) mod stdio;
pub(crate) mod update_writer;
pub(crate) mod writer;
