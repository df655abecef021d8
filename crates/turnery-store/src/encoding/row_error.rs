//! Defines the error of a malformed row.

/// Reason why a row cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RowError {
    /// Malformed JSON, or JSON that does not have the expected fields.
    #[error("{0}; if a newer turnery has written it, use that one")]
    Json(#[from] serde_json::Error),
    /// Any other malformed value.
    #[error("{0}")]
    Invalid(String),
}
