//! Fault: an error answer. What is wrong is said in `message`, since many clients show nothing else, and once more by
//! itself in `data.details`.

use agent_client_protocol_schema::v2;
use jsonrpsee::types::{ErrorObjectOwned, Params};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use turnery_agent::OpenError;
use turnery_agent::SetError;
use turnery_models::MissingKey;
use turnery_store::StoreError;
use turnery_tools::visible;

pub(crate) const PARSE: i32 = -32700;
pub(crate) const INVALID_REQUEST: i32 = -32600;
pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
pub(crate) const INVALID_PARAMS: i32 = -32602;
pub(crate) const INTERNAL: i32 = -32603;
pub(crate) const CANCELLED: i32 = -32800;
pub(crate) const AUTH_REQUIRED: i32 = -32000;
pub(crate) const NOT_FOUND: i32 = -32002;

/// An error answer in the making (RPC-13).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    code: i32,
    message: String,
    data: Map<String, Value>,
}

impl Fault {
    /// `what`: what happened. `details`: why, and what to do.
    pub(crate) fn new(code: i32, what: impl Into<String>, details: impl Into<String>) -> Self {
        let details = details.into();
        let message = format!("{}: {details}", what.into());
        Self {
            message,
            ..Self::saying(code, details)
        }
    }

    /// With a text that says it all.
    pub(crate) fn saying(code: i32, text: impl Into<String>) -> Self {
        let message = text.into();
        let mut data = Map::new();
        data.insert("details".to_owned(), Value::String(message.clone()));
        Self {
            code,
            message,
            data,
        }
    }

    /// With one more member of `data`.
    pub(crate) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.data.insert(key.to_owned(), value.into());
        self
    }

    /// Somebody has to log in first (AUTH-6).
    pub(crate) fn login(details: impl Into<String>) -> Self {
        Self::new(AUTH_REQUIRED, "Authentication required", details)
    }

    /// The parameters do not fit (RPC-10).
    pub(crate) fn params(details: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, "The parameters are not valid", details)
    }

    /// A session that is not active on this connection, or does not exist (SESS-8).
    pub(crate) fn no_session(id: &str, details: impl Into<String>) -> Self {
        Self::new(NOT_FOUND, "There is no such session", details).with("sessionId", id)
    }

    /// Something broke; `kind` is a word for programs. `details`: why, and what to do.
    pub(crate) fn internal(
        kind: &str,
        what: impl Into<String>,
        details: impl Into<String>,
        retryable: bool,
    ) -> Self {
        Self::new(INTERNAL, what, details)
            .with("kind", kind)
            .with("retryable", retryable)
    }

    /// With nothing hidden in the texts for people: they may quote a provider, a server or the client.
    fn visible(mut self) -> Self {
        self.message = visible(&self.message).into_owned();
        if let Some(Value::String(details)) = self.data.get_mut("details") {
            *details = visible(details).into_owned();
        }
        self
    }

    /// What the store says.
    pub(crate) fn store(error: &StoreError) -> Self {
        let details = error.to_string();
        let internal =
            |kind, message, retryable| Self::internal(kind, message, details.clone(), retryable);
        match error {
            StoreError::NotFound(id) => Self::no_session(id.as_str(), details),
            StoreError::BadCursor(_) => Self::params(details),
            StoreError::Busy { .. } => internal("session_busy", "The session is busy", true),
            StoreError::LaneLost(_) => internal(
                "lane_lost",
                "The session was taken over by somebody else",
                true,
            ),
            StoreError::HeadConflict { .. } => {
                internal("commit_conflict", "The session has changed meanwhile", true)
            }
            StoreError::Exists(_) | StoreError::CommitMismatch(_) | StoreError::Broken(_) => {
                internal("store", "The session could not be stored or read", false)
            }
        }
    }
}

impl From<Fault> for v2::Error {
    fn from(fault: Fault) -> Self {
        let fault = fault.visible();
        Self::new(fault.code, fault.message).data(Value::Object(fault.data))
    }
}

impl From<OpenError> for Fault {
    fn from(error: OpenError) -> Self {
        let details = error.to_string();
        match error {
            OpenError::Path(_) => Self::params(details),
            OpenError::OtherFolder { session, expected }
            | OpenError::FolderLeadsElsewhere {
                session, expected, ..
            } => Self::params(details)
                .with("sessionId", session.as_str())
                .with("expectedCwd", expected.display().to_string()),
            OpenError::Settings(_) => Self::internal(
                "settings",
                "The configuration cannot be read",
                details,
                false,
            ),
            // The folder was asked for, and what is configured there fits no model: no login cures it.
            OpenError::Model(_) => Self::new(
                INVALID_PARAMS,
                "The configured model cannot be used",
                details,
            )
            .with("kind", "model")
            .with("retryable", false),
            OpenError::Key(MissingKey { provider, hint }) => Self::login(format!(
                "There is no key for {provider}: run `turnery login {provider}` in a terminal or set \
                 {hint}, or choose another model."
            ))
            .with("provider", provider)
            .with("variable", hint),
            OpenError::Store(error) => Self::store(&error),
        }
    }
}

impl From<SetError> for Fault {
    fn from(error: SetError) -> Self {
        match error {
            SetError::Model(error) => Self::params(error.to_string()),
            SetError::Store(error) => Self::store(&error),
            SetError::Closed => Self::internal(
                "session_closed",
                "The session was closed meanwhile",
                "Load or resume the session, then try again.",
                true,
            ),
        }
    }
}

impl From<Fault> for ErrorObjectOwned {
    fn from(fault: Fault) -> Self {
        let fault = fault.visible();
        Self::owned(fault.code, fault.message, Some(fault.data))
    }
}

/// The parameters of a request. Absent and `null` are `{}` (RPC-11); a list is never right (RPC-10).
pub(crate) fn parse<T: DeserializeOwned>(params: &Params<'_>) -> Result<T, Fault> {
    let text = match params.as_str() {
        None | Some("null") => "{}",
        Some(text) => text,
    };
    if !text.starts_with('{') {
        return Err(Fault::params("params must be an object."));
    }
    let fault = |error: serde_json::Error| Fault::params(format!("params: {}.", plain(&error)));
    serde_json::from_str(text).map_err(fault)
}

/// What is wrong with JSON, for its author: where several forms are possible, the library names a type of Rust.
fn plain(error: &serde_json::Error) -> String {
    const UNKNOWN: &str = "data did not match any variant of untagged enum ";
    let text = error.to_string();
    let Some((name, place)) = text.strip_prefix(UNKNOWN).and_then(|it| it.split_once(' ')) else {
        return text;
    };
    match name {
        "McpServer" => format!(
            "an MCP server needs name, command, args and env, or type (\"http\" or \"sse\"), name, url and headers; one has not {place}"
        ),
        _ => format!(
            "a value has none of the forms that the schema of the protocol has for it {place}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_client_protocol_schema::v1::NewSessionRequest;

    #[test]
    fn parameters_of_no_form_are_told_without_words_of_rust() {
        for (server, expected) in [
            (
                r#"{"name": "x"}"#,
                "an MCP server needs name, command, args and env",
            ),
            ("7", "an MCP server needs name, command, args and env"),
        ] {
            let text = format!(r#"{{"cwd": "/", "mcpServers": [{server}]}}"#);
            let params = Params::new(Some(&text));
            let fault = parse::<NewSessionRequest>(&params).unwrap_err();
            let told = format!("{} {:?}", fault.message, fault.data);
            assert!(told.contains(expected), "{told}");
            assert!(
                told.contains("line 1") && !told.contains("untagged"),
                "{told}"
            );
        }
    }
}
