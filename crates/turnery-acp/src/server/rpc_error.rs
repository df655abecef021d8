//! JSON-RPC error responses. `message` contains the cause, since many clients show nothing else;
//! `data.details` repeats it alone.

use agent_client_protocol_schema::v2;
use jsonrpsee::types::ErrorObjectOwned;
use serde_json::{Map, Value};
use turnery_agent::OpenError;
use turnery_agent::SetOptionError;
use turnery_models::MissingKeyError;
use turnery_store::StoreError;
use turnery_tools::escape_invisible;

pub(crate) const PARSE_ERROR: i32 = -32700;
pub(crate) const INVALID_REQUEST: i32 = -32600;
pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
pub(crate) const INVALID_PARAMS: i32 = -32602;
pub(crate) const INTERNAL_ERROR: i32 = -32603;
pub(crate) const REQUEST_CANCELLED: i32 = -32800;
pub(crate) const AUTH_REQUIRED: i32 = -32000;
pub(crate) const RESOURCE_NOT_FOUND: i32 = -32002;

/// Error response (RPC-13).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RpcError {
    code: i32,
    message: String,
    data: Map<String, Value>,
}

impl RpcError {
    /// Creates an error. `summary` says what happened, `details` why and what to do.
    pub(crate) fn new(code: i32, summary: impl Into<String>, details: impl Into<String>) -> Self {
        let details = details.into();
        let message = format!("{}: {details}", summary.into());
        Self {
            message,
            ..Self::from_message(code, details)
        }
    }

    /// Creates an error whose message needs no details.
    pub(crate) fn from_message(code: i32, text: impl Into<String>) -> Self {
        let message = text.into();
        let mut data = Map::new();
        data.insert("details".to_owned(), Value::String(message.clone()));
        Self {
            code,
            message,
            data,
        }
    }

    /// Adds a member to `data`.
    pub(crate) fn with_data(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.data.insert(key.to_owned(), value.into());
        self
    }

    /// Authentication is required (AUTH-6).
    pub(crate) fn auth_required(details: impl Into<String>) -> Self {
        Self::new(AUTH_REQUIRED, "Authentication required", details)
    }

    /// The parameters are invalid (RPC-10).
    pub(crate) fn invalid_params(details: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, "The parameters are not valid", details)
    }

    /// The session does not exist or is not active on this connection (SESS-8).
    pub(crate) fn session_not_found(id: &str, details: impl Into<String>) -> Self {
        Self::new(RESOURCE_NOT_FOUND, "There is no such session", details)
            .with_data("sessionId", id)
    }

    /// Internal error. `kind` identifies the cause for programs; `details` says why and what to do.
    pub(crate) fn internal(
        kind: &str,
        summary: impl Into<String>,
        details: impl Into<String>,
        retryable: bool,
    ) -> Self {
        Self::new(INTERNAL_ERROR, summary, details)
            .with_data("kind", kind)
            .with_data("retryable", retryable)
    }

    /// Makes hidden characters visible, since the texts may quote a provider, a server or the client.
    fn into_visible(mut self) -> Self {
        self.message = escape_invisible(&self.message).into_owned();
        if let Some(Value::String(details)) = self.data.get_mut("details") {
            *details = escape_invisible(details).into_owned();
        }
        self
    }

    /// Converts an error of the store.
    pub(crate) fn from_store(error: &StoreError) -> Self {
        let details = error.to_string();
        let internal =
            |kind, message, retryable| Self::internal(kind, message, details.clone(), retryable);
        match error {
            StoreError::NotFound(id) => Self::session_not_found(id.as_str(), details),
            StoreError::BadCursor(_) => Self::invalid_params(details),
            StoreError::Busy { .. } => internal("session_busy", "The session is busy", true),
            StoreError::LaneLost(_) => internal(
                "lane_lost",
                "The session was taken over by another process",
                true,
            ),
            StoreError::HeadConflict { .. } => internal(
                "commit_conflict",
                "The session has changed in the meantime",
                true,
            ),
            StoreError::Exists(_) | StoreError::CommitMismatch(_) | StoreError::Broken(_) => {
                internal("store", "The session could not be stored or read", false)
            }
        }
    }
}

impl From<RpcError> for v2::Error {
    fn from(error: RpcError) -> Self {
        let error = error.into_visible();
        Self::new(error.code, error.message).data(Value::Object(error.data))
    }
}

impl From<OpenError> for RpcError {
    fn from(error: OpenError) -> Self {
        let details = error.to_string();
        match error {
            OpenError::InvalidId(_) | OpenError::Path(_) => Self::invalid_params(details),
            OpenError::OtherFolder { session, expected }
            | OpenError::FolderLeadsElsewhere {
                session, expected, ..
            } => Self::invalid_params(details)
                .with_data("sessionId", session.as_str())
                .with_data("expectedCwd", expected.display().to_string()),
            OpenError::Settings(_) => Self::internal(
                "settings",
                "The configuration cannot be read",
                details,
                false,
            ),
            // The configuration of the requested folder fits no model; a login would not help.
            OpenError::Model(_) => Self::new(
                INVALID_PARAMS,
                "The configured model cannot be used",
                details,
            )
            .with_data("kind", "model")
            .with_data("retryable", false),
            OpenError::Key(MissingKeyError { provider, hint }) => Self::auth_required(format!(
                "There is no key for {provider}: run `turnery login {provider}` in a terminal or set \
                 {hint}, or choose another model."
            ))
            .with_data("provider", provider)
            .with_data("variable", hint),
            OpenError::Store(error) => Self::from_store(&error),
        }
    }
}

impl From<SetOptionError> for RpcError {
    fn from(error: SetOptionError) -> Self {
        match error {
            SetOptionError::Model(error) => Self::invalid_params(error.to_string()),
            SetOptionError::Store(error) => Self::from_store(&error),
            SetOptionError::Closed => Self::internal(
                "session_closed",
                "The session was closed in the meantime",
                "Load or resume the session, then try again.",
                true,
            ),
        }
    }
}

impl From<RpcError> for ErrorObjectOwned {
    fn from(error: RpcError) -> Self {
        let error = error.into_visible();
        Self::owned(error.code, error.message, Some(error.data))
    }
}
