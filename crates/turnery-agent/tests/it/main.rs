//! The session task, driven by a puppet model, puppet tools and a client whose outbox can be stopped.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod asking;
mod bad_input;
mod cancelling;
mod claiming;
mod compacting;
mod continuing;
mod conversing;
mod delegating;
mod evaluating;
mod failing_store;
mod forking;
mod framing;
mod hooking;
mod inserting;
mod interrupting;
mod journalling;
mod keeping;
mod lending;
mod limits;
mod nesting;
mod observing;
mod opening;
mod overdue;
mod prompting;
mod records;
mod seeded;
mod shared_queue;
mod simulation;
mod slow_client;
mod steering;
mod storing;
mod trying;
mod watching;
mod world;
