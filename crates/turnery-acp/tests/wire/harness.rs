//! Test harness: a real connection over pipes with a scripted client. A witness observes all bytes in both
//! directions and validates every output line against the official schema; an oracle checks every message
//! against the rules.

mod client;
mod env;
mod fold_v2;
mod grammar_v2;
mod oracle;
mod schema_v2;
mod tools;

pub(crate) use client::{TestClient, WITH_V2, error_of, result_of};
pub(crate) use env::{TestEnv, prompt_params};
pub(crate) use fold_v2::FoldedSession;
pub(crate) use grammar_v2::GrammarV2;
pub(crate) use oracle::Oracle;
