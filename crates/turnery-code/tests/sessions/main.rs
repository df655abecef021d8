//! Sessions with real worker processes.

mod functions;
mod limits;
mod snapshots;
mod test_host;
mod values;
