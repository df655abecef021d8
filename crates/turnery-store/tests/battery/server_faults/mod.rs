//! Tests PostgreSQL between flaws of the store, connections that break, and a server that is killed.

mod cuts;
mod mutations;
mod proxy;
mod restarts;
