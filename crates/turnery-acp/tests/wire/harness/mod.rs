//! Harness: a real connection over pipes, with the client played by hand. A witness hears all bytes, in both
//! directions, and holds every line that comes out against the official schema; and every message is shown to
//! an oracle that knows the rules.

mod client;
mod fold_v2;
mod grammar_v2;
mod oracle;
mod schema_v2;
mod tools;
mod world;

pub(crate) use client::{Client, WITH_V2, error_of, result_of};
pub(crate) use fold_v2::Known;
pub(crate) use grammar_v2::Grammar;
pub(crate) use oracle::Oracle;
pub(crate) use world::{World, prompt};
