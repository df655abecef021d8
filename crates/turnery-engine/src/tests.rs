//! Tests of the engine: feed inputs to a loop and compare its effects, formatted as lines.

mod cancellation;
mod child_usage;
mod compaction;
mod compaction_in_loop;
mod context;
mod continuation_kinds;
mod event_contents;
pub(crate) mod fixtures;
pub(crate) mod harness;
mod hooks;
mod last_reply;
mod many_calls;
mod model_silence;
mod oracle_detection;
mod outcomes;
mod parallel_calls;
mod parallel_group;
mod properties;
mod random_run;
mod recording;
mod response_limits;
mod serialization;
mod shared_limits;
mod steering;
mod stop_messages;
mod tool_control;
mod turns;
