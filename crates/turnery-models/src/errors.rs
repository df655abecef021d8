//! Turns failed calls into errors that say what failed and what to do.
//!
//! Messages quote what the provider reported, shortened and without the key. Nothing else of the traffic appears
//! in them.

mod overflow;
mod provider_error;
mod retry_after;

pub(crate) use provider_error::ProviderError;

use crate::{endpoint::Endpoint, retry::AttemptError};
use reqwest::header::HeaderMap;
use std::{
    error::Error,
    io,
    path::Path,
    time::{Duration, SystemTime},
};
use turnery_engine::{ModelError, ModelErrorKind, ResponseLimitError};

/// Largest part read of an error response. Unit: bytes.
pub(crate) const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Longest quote of a provider's text. Unit: characters.
const MAX_QUOTE_CHARS: usize = 300;

pub(crate) fn invalid_url(at: &Endpoint, why: &str) -> ModelError {
    let Endpoint {
        display_url: shown,
        url_hint,
        ..
    } = at;
    ModelError::new(
        ModelErrorKind::BadRequest,
        format!(
            "{shown:?} cannot be called ({why}): {url_hint} to something like http://127.0.0.1:8080/v1."
        ),
    )
}

pub(crate) fn invalid_headers(at: &Endpoint, why: &str) -> ModelError {
    let message = format!(
        "The request to {0} cannot be made: {why}. Correct headers of the provider {0} in the configuration.",
        at.provider
    );
    ModelError::new(ModelErrorKind::BadRequest, message)
}

/// Returns the error for a file with root certificates that cannot be used.
pub(crate) fn invalid_certificates(at: &Endpoint, path: &Path, why: &str) -> ModelError {
    let message = format!(
        "The certificates in {} cannot be read ({why}): correct ca_file of the provider {} in the configuration.",
        path.display(),
        at.provider
    );
    ModelError::new(ModelErrorKind::BadRequest, message)
}

pub(crate) fn client_setup_failed(at: &Endpoint, error: &reqwest::Error) -> ModelError {
    let message = format!(
        "Could not prepare to call {}: {}.",
        at.provider,
        root_cause(error)
    );
    ModelError::new(ModelErrorKind::Network, message)
}

/// Returns the error for a request that received no response.
pub(crate) fn connection_failed(at: &Endpoint, error: &reqwest::Error) -> ModelError {
    let Endpoint {
        provider,
        display_url: shown,
        url_hint,
        ..
    } = at;
    let why = root_cause(error);
    ModelError::new(
        ModelErrorKind::Network,
        if let Some(certificate) = certificate_error(error) {
            format!(
                "The certificate of {provider} at {shown} is not accepted ({why}): {}.",
                advise_on_certificate(certificate, provider)
            )
        } else if error.is_connect() {
            format!(
                "Could not reach {provider} at {shown} ({why}): check that it runs and that you are online, or {url_hint} to its address."
            )
        } else {
            format!(
                "The connection to {provider} at {shown} broke off before it answered ({why}): try again."
            )
        },
    )
}

/// Returns the error for a connection that closed during the response.
pub(crate) fn connection_lost(provider: &str, error: &reqwest::Error) -> ModelError {
    let message = format!(
        "The connection to {provider} broke off in the middle of the answer ({}): try again.",
        root_cause(error)
    );
    ModelError::new(ModelErrorKind::Network, message)
}

pub(crate) fn idle_timeout(at: &Endpoint, idle: Duration) -> ModelError {
    let message = format!(
        "{} at {} sent nothing for {} seconds: try again, choose another model, or raise limits.idle_seconds in the configuration.",
        at.provider,
        at.display_url,
        idle.as_secs_f32()
    );
    ModelError::new(ModelErrorKind::Timeout, message)
}

/// Returns the error for a response of which only pings arrived.
pub(crate) fn content_timeout(at: &Endpoint, content: Duration) -> ModelError {
    let message = format!(
        "{} at {} kept the connection open for {} seconds and sent nothing of an answer: try again, choose another model, or raise limits.content_seconds in the configuration.",
        at.provider,
        at.display_url,
        content.as_secs_f32()
    );
    ModelError::new(ModelErrorKind::Timeout, message)
}

/// Returns the error for a response that exceeds a limit, with the message of the engine's own limits.
pub(crate) fn answer_limit_exceeded(overrun: ResponseLimitError) -> ModelError {
    ModelError::new(ModelErrorKind::AnswerLimit, overrun.to_string())
}

/// Returns the error for a status that reports success with a body that is not an event stream.
pub(crate) fn not_an_event_stream(at: &Endpoint, text: &str) -> ModelError {
    if let Some(reported) = ProviderError::within(text) {
        return reported.to_model_error(at, None);
    }
    let Endpoint {
        provider,
        display_url: shown,
        url_hint,
        ..
    } = at;
    let quote = quote(at, text);
    ModelError::new(
        ModelErrorKind::Protocol,
        format!(
            "{provider} at {shown} did not answer with a stream of events ({quote}): check the address, and {url_hint} if it is wrong."
        ),
    )
}

/// Returns the error for a response that ended without its terminal event, or in the middle of an event (C-31).
pub(crate) fn unfinished(at: &Endpoint, why: &str) -> ModelError {
    let why = redact_and_shorten(at, why);
    ModelError::new(
        ModelErrorKind::Unfinished,
        format!(
            "The answer of {} stopped before it was said to be over ({why}): choose another model, or check what stands between you and {}.",
            at.provider, at.display_url
        ),
    )
}

/// Returns the error for a stream that violates the API.
pub(crate) fn protocol_violation(at: &Endpoint, why: &str) -> ModelError {
    let why = redact_and_shorten(at, why);
    ModelError::new(
        ModelErrorKind::Protocol,
        format!(
            "The answer of {} is not complete ({why}): try again.",
            at.provider
        ),
    )
}

/// Returns the error for a response with an error status.
pub(crate) fn from_status(
    at: &Endpoint,
    status: u16,
    headers: &HeaderMap,
    text: &str,
) -> AttemptError {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let reported = ProviderError::within(text).unwrap_or_else(|| ProviderError {
        code: String::new(),
        message: text.to_owned(),
        status: None,
    });
    let mut error = reported.to_model_error(at, Some(status));
    if (300..400).contains(&status) {
        let to = redact_and_shorten(at, header("location").unwrap_or("elsewhere"));
        error.message = format!(
            "{} has moved from {} to {to}: {}.",
            at.provider, at.display_url, at.url_hint
        );
    }
    let asked = retry_after::from_response(status, headers, text, SystemTime::now().into());
    error.retry_after = asked.or(error.retry_after);
    AttemptError {
        error,
        should_retry: header("x-should-retry").and_then(|word| word.parse().ok()),
    }
}

/// Returns why the server's certificate was not accepted, if that is the cause.
pub(crate) fn certificate_error<'e>(
    error: &'e (dyn Error + 'static),
) -> Option<&'e rustls::CertificateError> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        // The source of an IO error is that of the error within, which is skipped.
        let within = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        let tls = within
            .and_then(|error| error.downcast_ref::<rustls::Error>())
            .or_else(|| error.downcast_ref());
        if let Some(rustls::Error::InvalidCertificate(certificate)) = tls {
            return Some(certificate);
        }
        cause = within.map_or_else(|| error.source(), |error| Some(error));
    }
    None
}

/// Returns what to do about a certificate that is not accepted, as an imperative.
fn advise_on_certificate(error: &rustls::CertificateError, provider: &str) -> String {
    use rustls::CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet,
        NotValidYetContext,
    };
    match error {
        Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. } => {
            "check the date of this machine, or have the certificate renewed".to_owned()
        }
        NotValidForName | NotValidForNameContext { .. } => {
            "check the address: the certificate is for another one".to_owned()
        }
        // The type is not exhaustive.
        _ => format!(
            "if a server or proxy of your own has issued it, set ca_file of the provider {provider} in the \
             configuration to the file with the certificate of its authority"
        ),
    }
}

/// Returns the innermost cause: the outer ones repeat the URL.
fn root_cause(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Returns a provider's text in a form fit for display.
fn quote(at: &Endpoint, text: &str) -> String {
    match redact_and_shorten(at, text) {
        words if words.is_empty() => "it did not say why".to_owned(),
        _ if is_html(text) => "it answered with a page for browsers".to_owned(),
        words => format!("it said: {words}"),
    }
}

fn is_html(text: &str) -> bool {
    let start = text.trim_start().get(..5).unwrap_or_default();
    start.eq_ignore_ascii_case("<html") || start.eq_ignore_ascii_case("<!doc")
}

/// Shortens a text that quotes a provider, and removes the key.
fn redact_and_shorten(at: &Endpoint, text: &str) -> String {
    let text = at.without_key(&text[..text.floor_char_boundary(MAX_ERROR_BYTES)]);
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = words.char_indices().nth(MAX_QUOTE_CHARS) {
        words.truncate(cut);
        words.push('…');
    }
    words
}
