//! Turns failed calls into errors that say what failed and what to do.
//!
//! Messages quote what the provider reported, shortened and without the key. Nothing else of the traffic appears
//! in them.

use crate::{endpoint::Endpoint, retry::AttemptError};
use chrono::{DateTime, Utc};
use reqwest::header::HeaderMap;
use serde_json::Value;
use std::{error::Error, time::Duration};
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
            "{shown:?} is no URL ({why}): {url_hint} to something like http://127.0.0.1:8080/v1."
        ),
    )
}

pub(crate) fn client_setup_failed(at: &Endpoint, error: &reqwest::Error) -> ModelError {
    let message = format!(
        "Could not prepare to call {}: {}.",
        at.provider,
        root_cause(error)
    );
    ModelError::new(ModelErrorKind::Network, message)
}

/// No response was received.
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
        if error.is_connect() {
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

/// The connection closed during the response.
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

/// Only pings arrived.
pub(crate) fn content_timeout(at: &Endpoint, content: Duration) -> ModelError {
    let message = format!(
        "{} at {} kept the connection open for {} seconds and sent nothing of an answer: try again, choose another model, or raise limits.content_seconds in the configuration.",
        at.provider,
        at.display_url,
        content.as_secs_f32()
    );
    ModelError::new(ModelErrorKind::Timeout, message)
}

/// The response exceeds a limit. Uses the message of the engine's own limits.
pub(crate) fn answer_limit_exceeded(overrun: ResponseLimitError) -> ModelError {
    ModelError::new(ModelErrorKind::AnswerLimit, overrun.to_string())
}

/// The status reports success, but the body is not an event stream.
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

/// The response ended without its terminal event, or in the middle of an event (C-31).
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

/// The stream violates the API.
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

/// Converts a response with an error status.
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
    error.retry_after = parse_retry_after(
        header("retry-after-ms"),
        header("retry-after"),
        std::time::SystemTime::now().into(),
    );
    AttemptError {
        error,
        should_retry: header("x-should-retry").and_then(|word| word.parse().ok()),
    }
}

/// Returns the requested delay: milliseconds, else seconds, else a date.
fn parse_retry_after(
    millis: Option<&str>,
    seconds: Option<&str>,
    now: DateTime<Utc>,
) -> Option<Duration> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    if let Some(millis) = millis.and_then(number) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let text = seconds?;
    match number(text) {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => {
            let until = DateTime::parse_from_rfc2822(text.trim()).ok()?;
            Some(
                (until.with_timezone(&Utc) - now)
                    .to_std()
                    .unwrap_or_default(),
            )
        }
    }
}

/// Error reported by a provider.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ProviderError {
    /// Type and code of the error, joined.
    pub(crate) code: String,
    pub(crate) message: String,
    /// HTTP status inside the text.
    pub(crate) status: Option<u16>,
}

impl ProviderError {
    /// Finds the error in a JSON text, in any of the shapes that servers use.
    pub(crate) fn within(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        // Gemini-compatible servers wrap the object in a list.
        let value = value.get(0).unwrap_or(&value);
        Self::from_value(value)
    }

    fn from_value(value: &Value) -> Option<Self> {
        let error = value.get("error").filter(|error| !error.is_null());
        let object = error.unwrap_or(value);
        if let Some(message) = object.as_str() {
            return Some(Self {
                message: message.to_owned(),
                ..Self::default()
            });
        }
        let message = object.get("message").or_else(|| object.get("detail"));
        if error.is_none() && message.is_none() {
            return None;
        }
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let part = |name: &str| object.get(name).map(text).unwrap_or_default();
        let mut message = message.map_or_else(|| object.to_string(), text);
        // OpenRouter: message of the upstream provider.
        if let Some(raw) = object.pointer("/metadata/raw").and_then(Value::as_str) {
            message = format!("{message}: {raw}");
        }
        let code = object.get("code").and_then(Value::as_u64);
        Some(Self {
            code: format!("{} {}", part("type"), part("code")),
            message,
            status: code
                .and_then(|code| u16::try_from(code).ok())
                .filter(|code| *code >= 400),
        })
    }

    /// Converts to a `ModelError`; `status` is the HTTP status if it was an error status.
    pub(crate) fn to_model_error(&self, at: &Endpoint, status: Option<u16>) -> ModelError {
        let Endpoint {
            provider,
            model,
            display_url: shown,
            url_hint,
            ..
        } = at;
        let status = status.or(self.status);
        let quote = quote(at, &self.message);
        let cause = self.cause(status);
        let message = match cause {
            ErrorCause::Key => format!(
                "{provider} refuses the key: check {} ({quote}).",
                at.key_location()
            ),
            ErrorCause::Forbidden => format!(
                "{provider} does not let this key use {model}: check the account behind {} ({quote}).",
                at.key_location()
            ),
            ErrorCause::NoCredit => format!(
                "The account at {provider} has no credit left: add some, or choose another provider ({quote})."
            ),
            ErrorCause::Overflow => format!(
                "The conversation is longer than {model} can take in: shorten or summarise it, or choose a model with a larger window ({quote})."
            ),
            ErrorCause::UnknownModel => format!(
                "{provider} has no model called {model:?}, or not for you: choose another ({quote})."
            ),
            ErrorCause::UnknownPath => format!(
                "There is nothing at {shown}: {url_hint} to the address that ends before /chat/completions or /v1/messages ({quote})."
            ),
            ErrorCause::Busy => format!("{provider} has had too many requests ({quote})."),
            ErrorCause::Overloaded => format!("{provider} is overloaded or broken ({quote})."),
            ErrorCause::Refused => format!("{provider} refuses the request ({quote})."),
        };
        ModelError {
            status,
            ..ModelError::new(cause.kind(), message)
        }
    }

    fn cause(&self, status: Option<u16>) -> ErrorCause {
        let code = self.code.to_ascii_lowercase();
        let message = self.message.to_ascii_lowercase();
        let coded = |words: &[&str]| words.iter().any(|word| code.contains(word));
        let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
        let is_rate = status == Some(429);
        if coded(&["insufficient_quota", "billing"])
            || status == Some(402)
            || says(NO_CREDIT_PHRASES)
            // With status 429 this may be a per-minute quota (Gemini).
            || (status == Some(403) && says(&["quota"]))
        {
            return ErrorCause::NoCredit;
        }
        if !is_rate && (coded(OVERFLOW_PHRASES) || says(OVERFLOW_PHRASES)) {
            return ErrorCause::Overflow;
        }
        if coded(&["model_not_found"]) {
            return ErrorCause::UnknownModel;
        }
        match status {
            Some(401) => ErrorCause::Key,
            // Gemini reports an invalid key with status 400.
            Some(400) if says(&["api key not valid"]) => ErrorCause::Key,
            // An HTML page comes from a proxy and says nothing about the key.
            Some(403) if is_html(&self.message) => ErrorCause::Refused,
            Some(403) => ErrorCause::Forbidden,
            Some(404) if says(&["model"]) => ErrorCause::UnknownModel,
            Some(404 | 405 | 300..=399) => ErrorCause::UnknownPath,
            Some(413) => ErrorCause::Overflow,
            Some(429) => ErrorCause::Busy,
            Some(408 | 500..) => ErrorCause::Overloaded,
            _ if coded(&["authentication", "invalid_api_key"]) => ErrorCause::Key,
            _ if coded(&["permission"]) => ErrorCause::Forbidden,
            _ if coded(&["rate_limit"]) => ErrorCause::Busy,
            Some(_) => ErrorCause::Refused,
            None if coded(&["invalid_request"]) => ErrorCause::Refused,
            None if coded(&["not_found"]) => ErrorCause::UnknownModel,
            None => ErrorCause::Overloaded,
        }
    }
}

/// Phrases by which providers report missing credit.
const NO_CREDIT_PHRASES: &[&str] = &[
    "credit balance is too low",
    "insufficient balance",
    "insufficient credit",
    "requires more credits",
];

/// Phrases by which providers report that a conversation is too long.
const OVERFLOW_PHRASES: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "prompt is too long",
    "input is too long",
    "maximum context length",
    "context length exceeded",
    "exceed context limit",
    "exceeds the available context size",
    "exceeds the context window",
    "exceeds the model's context",
    "reduce the length of the messages",
];

/// Cause of an error.
#[derive(Clone, Copy)]
enum ErrorCause {
    Key,
    Forbidden,
    NoCredit,
    Overflow,
    UnknownModel,
    UnknownPath,
    Busy,
    Overloaded,
    Refused,
}

impl ErrorCause {
    fn kind(self) -> ModelErrorKind {
        match self {
            Self::Key | Self::Forbidden => ModelErrorKind::Auth,
            Self::Overflow => ModelErrorKind::ContextOverflow,
            // Another key does not help an account without credit.
            Self::NoCredit | Self::UnknownModel | Self::UnknownPath | Self::Refused => {
                ModelErrorKind::BadRequest
            }
            Self::Busy => ModelErrorKind::RateLimit,
            Self::Overloaded => ModelErrorKind::Overloaded,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_milliseconds_seconds_or_a_date() {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let wait = |millis, seconds| parse_retry_after(millis, seconds, now);
        assert_eq!(
            wait(Some("250"), Some("9")),
            Some(Duration::from_millis(250))
        );
        assert_eq!(wait(None, Some("1.5")), Some(Duration::from_millis(1500)));
        assert_eq!(
            wait(None, Some("Sat, 21 Nov 2026 12:00:30 GMT")),
            Some(Duration::from_secs(30))
        );
        assert_eq!(
            wait(None, Some("Sat, 21 Nov 2026 11:00:00 GMT")),
            Some(Duration::ZERO)
        );
        assert_eq!(wait(None, Some("-1")), None);
        assert_eq!(wait(None, Some("soon")), None);
        assert_eq!(wait(None, None), None);
    }

    #[test]
    fn errors_are_found_in_every_shape() {
        let message =
            |text| ProviderError::within(text).map(|reported| (reported.message, reported.status));
        let says = |text: &str, status| Some((text.to_owned(), status));
        assert_eq!(
            message(r#"{"error":{"message":"a","code":502}}"#),
            says("a", Some(502))
        );
        assert_eq!(message(r#"{"error":"b"}"#), says("b", None));
        assert_eq!(
            message(r#"{"object":"error","message":"c"}"#),
            says("c", None)
        );
        assert_eq!(message(r#"{"detail":"d"}"#), says("d", None));
        assert_eq!(message(r#"[{"error":{"message":"e"}}]"#), says("e", None));
        assert_eq!(
            message(r#"{"error":{"message":"f","metadata":{"raw":"g"}}}"#),
            says("f: g", None)
        );
        assert_eq!(message(r#"{"choices":[]}"#), None);
        assert_eq!(message("<html>"), None);
    }
}
