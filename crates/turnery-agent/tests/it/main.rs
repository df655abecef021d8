//! Tests of the session task with a scripted model, scripted tools and a client whose outbox can be blocked.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod bad_input;
mod cancel;
mod candidate_groups;
mod claim;
mod commit_order;
mod compaction;
mod continuation;
mod evaluation;
mod failing_store;
mod finish;
mod fixture;
mod fork;
mod frames;
mod hanging_store;
mod hooks;
mod journal;
mod limits;
mod open;
mod oracle_checks;
mod permissions;
mod price_limits;
mod prompt_queue;
mod prompts;
mod records;
mod recovery;
mod reopening;
mod seeded_faults;
mod shared_queue;
mod simulation;
mod slow_client;
mod steering;
mod store_failures;
mod sub_agent_limits;
mod sub_agents;
mod tool_telemetry;
