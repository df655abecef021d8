//! Tests of the engine: a loop is fed inputs, and what it said is read as lines.

mod answer_limits;
mod cancels;
mod children;
mod compacting;
mod compaction;
mod context;
mod control;
mod ends;
pub(crate) mod fixture;
mod group;
mod hooks;
mod judged;
mod kinds;
mod last_reply;
mod laws;
mod many_calls;
mod parallel;
mod play;
mod recording;
mod script;
mod sentences;
mod shapes;
mod shared_limits;
mod silence;
mod steering;
mod told;
mod turns;
