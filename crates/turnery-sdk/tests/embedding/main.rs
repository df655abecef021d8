//! Tests of the embedding API: activities, sinks, streams, input, cancellation and usage.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod activity_json;
mod blocking_store;
mod builders;
mod busy_session;
mod cancel;
mod child_usage;
mod converse;
mod documents;
mod evidence;
mod finish;
mod fixture;
mod input;
mod law_mutations;
mod legacy_sessions;
mod nested_rows;
mod observers;
mod results;
mod session_runs;
mod sinks;
mod streams;
mod toy;
mod traces;
mod usage;
mod usage_histories;
mod usage_laws;
