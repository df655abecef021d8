//! Time, as the host passes it.

/// Wall-clock time in UTC. The engine never reads a clock; the host passes the time with every input.
pub type Timestamp = chrono::DateTime<chrono::Utc>;
