//! Tests of compaction: size estimates and plans.

pub(crate) mod conversation;
mod plan;
mod size;
