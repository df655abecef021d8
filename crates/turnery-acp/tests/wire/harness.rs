//! Test harness: a real connection over pipes with a scripted client. A judge observes all bytes in both
//! directions: the oracle of `acp-conformance` checks every line against the official schema and the rules of the
//! protocol, and turnery's promises are checked beyond them.

mod client;
mod client_line;
mod env;
mod fold_v2;
mod judge;
mod promises;
mod readable;
mod tools;

pub(crate) use client::{TestClient, WITH_V2, error_of, result_of};
pub(crate) use env::{TestEnv, prompt_params, tool_step};
pub(crate) use fold_v2::FoldedSession;
pub(crate) use judge::Judge;
