//! Sessions with real worker processes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod functions;
mod limits;
mod snapshots;
mod test_host;
mod values;
