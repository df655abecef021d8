//! The session task, driven by a puppet model, puppet tools and a client whose outbox can be stopped.

mod asking;
mod cancelling;
mod opening;
mod prompting;
mod simulation;
mod slow_client;
mod world;
