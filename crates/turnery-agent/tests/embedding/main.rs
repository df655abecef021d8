//! The embedding surface: activities, sinks, streams, input, cancels, usage; all through the public API.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod cancels;
mod children;
mod conflicts;
mod documents;
mod evidence;
mod falsehoods;
mod held;
mod histories;
mod input;
mod laws;
mod lives;
mod observing;
mod old;
mod results;
mod shapes;
mod sinks;
mod streams;
mod toy;
mod traces;
mod usage;
mod world;
