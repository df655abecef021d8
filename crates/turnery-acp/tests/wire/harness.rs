//! Test harness: a real connection over pipes with a client that each test drives. A judge checks all bytes
//! in both directions: with the oracle of `acp-conformance` against the official schema and the rules of the
//! protocol, and against turnery's own guarantees.

mod client;
mod client_line;
mod env;
mod fold_v2;
mod judge;
mod promises;
mod readable;
mod tools;

pub(crate) use client::{TestClient, V2_VARIABLE, error_code_of, result_of};
pub(crate) use env::{TestEnv, prompt_params, tool_step};
pub(crate) use fold_v2::FoldedSession;
pub(crate) use judge::Judge;
