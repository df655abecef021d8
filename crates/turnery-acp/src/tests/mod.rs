//! Tests of the parts, each against expectations written by hand.

mod calls;
mod client_side;
mod commands;
mod content;
mod envelope;
mod news;
mod outbox;
pub(crate) mod parts;
mod peer;
mod permission;
pub(crate) mod plan;
mod reader;
mod stop;
mod table;
pub(crate) mod translate;
mod writer;
