//! The wire: a real connection over pipes, from outside.

mod ending;
#[expect(dead_code, reason = "the tests of tools come with the tools")]
mod harness;
mod prompts;
mod rpc;
mod sessions;
