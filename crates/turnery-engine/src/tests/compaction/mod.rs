//! Tests of compaction: how large messages are, what is summarised and what stays.

mod plan;
mod size;
pub(crate) mod talk;
