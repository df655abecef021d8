//! Tests PostgreSQL between flaws of the store, connections that break, and a server that is killed.

mod cuts;
mod mutations;
pub(crate) mod phrase_filters;
mod proxy;
mod restarts;
