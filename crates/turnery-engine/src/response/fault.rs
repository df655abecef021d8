//! Fault: how a model call fails.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How a model call failed. No secret, no header, no request body is ever part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{message}")]
pub struct ModelFault {
    /// The sort of failure.
    pub kind: FaultKind,
    /// What happened and what to do, for a person.
    pub message: String,
    /// The HTTP status, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the provider asks to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
}

/// The sort of a model call's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// No connection, or it broke off.
    Network,
    /// The stream was not what the API promises.
    Protocol,
    /// The stream ended in good order, but never said that the answer was over (LASH-25, C-31).
    Unfinished,
    /// Too many requests.
    RateLimit,
    /// The provider is overloaded or broken (5xx, 529).
    Overloaded,
    /// The key is missing, wrong, or may not do this.
    Auth,
    /// The request does not fit the model's context window.
    ContextOverflow,
    /// The provider refuses the request as it is (4xx).
    BadRequest,
    /// The provider fell silent.
    Timeout,
    /// The answer exceeds a bound on its size.
    AnswerLimit,
}

impl FaultKind {
    /// Whether the same request may succeed later (UP-8).
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
