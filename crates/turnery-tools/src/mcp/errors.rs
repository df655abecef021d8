//! Describes errors of servers without revealing secrets: uses neither the library's texts, which contain
//! URLs, nor its log.

use rmcp::{
    ErrorData, ServiceError,
    service::ClientInitializeError,
    transport::streamable_http_client::{HttpStatusError, StreamableHttpError},
};
use std::{error::Error, io::ErrorKind};
use turnery_engine::ToolErrorKind;

/// Describes why the handshake failed.
pub(super) fn describe_handshake_error(error: &ClientInitializeError) -> String {
    if error.is_authorization_required() || error.auth_challenge().is_some() {
        return "it asks for a login: give it a token in a header".to_owned();
    }
    match error {
        ClientInitializeError::JsonRpcError(error) => {
            format!(
                "it refused the connection: {}",
                describe_server_error(error)
            )
        }
        ClientInitializeError::ConnectionClosed(_) => "it ended".to_owned(),
        ClientInitializeError::TransportError { error, .. } => {
            describe_transport_error(error.error.as_ref())
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "it speaks no version of the protocol that turnery knows".to_owned()
        }
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_)
        | ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            "it did not answer the handshake as the protocol requires".to_owned()
        }
        // The enum is non-exhaustive.
        _ => "the handshake failed".to_owned(),
    }
}

/// Describes why a request failed.
pub(super) fn describe_request_error(error: &ServiceError) -> (ToolErrorKind, String) {
    let text = match error {
        ServiceError::McpError(error) => describe_server_error(error),
        ServiceError::TransportSend(error) => describe_transport_error(error.error.as_ref()),
        ServiceError::TransportClosed => {
            "it ended before it answered; it is started again when it is used again".to_owned()
        }
        ServiceError::UnexpectedResponse => "its response does not match the request".to_owned(),
        ServiceError::Cancelled { .. } => {
            return (
                ToolErrorKind::Cancelled,
                "the call was cancelled".to_owned(),
            );
        }
        ServiceError::Timeout { .. } => {
            return (
                ToolErrorKind::Timeout,
                "it did not answer in time".to_owned(),
            );
        }
        // The enum is non-exhaustive.
        _ => "the request failed".to_owned(),
    };
    (ToolErrorKind::ExecutionError, text)
}

/// Describes an error that the server returned.
pub(super) fn describe_server_error(error: &ErrorData) -> String {
    format!("{} ({})", error.message, error.code.0)
}

/// Describes why a server's program could not be started.
pub(super) fn describe_spawn_error(kind: ErrorKind) -> String {
    let why = match kind {
        ErrorKind::NotFound => "program not found".to_owned(),
        ErrorKind::PermissionDenied => "its program may not be run".to_owned(),
        other => other.to_string(),
    };
    format!("cannot start: {why}")
}

fn describe_transport_error(error: &(dyn Error + 'static)) -> String {
    let mut cause = Some(error);
    while let Some(error) = cause {
        // This error does not return its cause from `source`.
        if let Some(StreamableHttpError::Client(error)) =
            error.downcast_ref::<StreamableHttpError<reqwest::Error>>()
        {
            return describe_http_error(error);
        }
        if let Some(StreamableHttpError::ResponseBodyTooLarge { max_size }) =
            error.downcast_ref::<StreamableHttpError<reqwest::Error>>()
        {
            let limit = crate::text::format_size(*max_size as u64);
            return format!(
                "its answer is larger than {limit}, the most that is read: ask for less at once"
            );
        }
        if let Some(error) = error.downcast_ref::<HttpStatusError>() {
            return format!("it answered with HTTP status {}", error.status);
        }
        if let Some(error) = error.downcast_ref::<reqwest::Error>() {
            return describe_http_error(error);
        }
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return match error.kind() {
                ErrorKind::BrokenPipe => "it ended".to_owned(),
                kind => format!("the connection broke: {kind}"),
            };
        }
        cause = error.source();
    }
    "the connection broke".to_owned()
}

fn describe_http_error(error: &reqwest::Error) -> String {
    if let Some(status) = error.status() {
        return format!("it answered with HTTP status {}", status.as_u16());
    }
    let text = if error.is_connect() {
        "nothing answers at its address"
    } else if error.is_timeout() {
        "it did not answer in time"
    } else if error.is_redirect() {
        "it redirects to another host or too often, which is not followed"
    } else {
        "the connection broke"
    };
    text.to_owned()
}
