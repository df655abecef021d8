//! Errors of model calls.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Error of a model call. Never contains secrets, headers or request bodies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{message}")]
pub struct ModelError {
    /// Kind of error.
    pub kind: ModelErrorKind,
    /// Message for the user: what happened and what to do.
    pub message: String,
    /// HTTP status, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Delay that the provider requests before a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
    /// True if the provider rejected the model or the account rather than the request: another model may accept it. Not
    /// stored.
    #[serde(skip)]
    pub is_about_model: bool,
}

impl ModelError {
    /// Creates an error without an HTTP status.
    #[must_use]
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            retry_after: None,
            is_about_model: false,
        }
    }
}

/// Kind of a model error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// The connection failed or was interrupted.
    Network,
    /// The stream violated the API's format.
    Protocol,
    /// The stream ended normally, but without an end marker (LASH-25, C-31).
    Unfinished,
    /// Too many requests.
    RateLimit,
    /// The provider is overloaded or broken (5xx, 529).
    Overloaded,
    /// The key is missing, invalid, or lacks permission.
    Auth,
    /// The request does not fit the model's context window.
    ContextOverflow,
    /// The provider rejected the request (4xx).
    BadRequest,
    /// The provider stopped sending data.
    Timeout,
    /// The response exceeds a size limit.
    AnswerLimit,
}

impl ModelErrorKind {
    /// Returns true if the same request may succeed later (UP-8).
    #[must_use]
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Network
            | Self::Protocol
            | Self::Unfinished
            | Self::RateLimit
            | Self::Overloaded
            | Self::Timeout => true,
            Self::Auth | Self::ContextOverflow | Self::BadRequest | Self::AnswerLimit => false,
        }
    }
}
