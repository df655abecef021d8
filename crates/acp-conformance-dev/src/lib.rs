//! Tests the suite `acp-conformance` itself, and compares agents with it.
//!
#![doc = include_str!("../README.md")]

pub mod broken_agent;
pub mod faults;
pub mod mutations;
pub mod scoreboard;
