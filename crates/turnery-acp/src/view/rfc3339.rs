//! Formats times for the protocol.

use turnery_engine::Timestamp;

/// Formats a time as RFC 3339 with milliseconds (LIST-6).
pub(crate) fn format_rfc3339(at: Timestamp) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}
