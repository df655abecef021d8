//! Tests with servers built on the library's server side, over pipes and as processes.

mod calls;
mod failures;
mod fake_server;
mod lists;
mod processes;
