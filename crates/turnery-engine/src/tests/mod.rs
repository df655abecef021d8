//! Tests of the engine: a loop is fed inputs, and what it said is read as lines.

mod cancels;
mod compaction;
mod context;
mod ends;
pub(crate) mod fixture;
mod judged;
mod laws;
mod recording;
mod script;
mod shapes;
mod told;
mod turns;
