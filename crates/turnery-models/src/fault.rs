//! Fault: what went wrong with a call, in a sentence that says what to do about it.
//!
//! What a provider said is quoted, shortened, and freed of the key. Nothing else of the traffic is
//! ever part of a fault.

use crate::{
    http::{Endpoint, LONGEST_ERROR},
    retry::Failure,
};
use chrono::{DateTime, Utc};
use reqwest::header::HeaderMap;
use serde_json::Value;
use std::{error::Error, time::Duration};
use turnery_engine::{AnswerOverrun, FaultKind, ModelFault};

/// How much of a provider's text is quoted. Unit: characters.
const LONGEST_QUOTE: usize = 300;

/// A fault without a status.
pub(crate) fn plain(kind: FaultKind, message: String) -> ModelFault {
    ModelFault {
        kind,
        message,
        status: None,
        retry_after: None,
    }
}

pub(crate) fn bad_url(at: &Endpoint, why: &str) -> ModelFault {
    let Endpoint {
        shown, url_hint, ..
    } = at;
    plain(
        FaultKind::BadRequest,
        format!(
            "{shown:?} is no URL ({why}): {url_hint} to something like http://127.0.0.1:8080/v1."
        ),
    )
}

pub(crate) fn no_client(at: &Endpoint, error: &reqwest::Error) -> ModelFault {
    let message = format!(
        "Could not prepare to call {}: {}.",
        at.provider,
        root(error)
    );
    plain(FaultKind::Network, message)
}

/// No answer came at all.
pub(crate) fn network(at: &Endpoint, error: &reqwest::Error) -> ModelFault {
    let Endpoint {
        provider,
        shown,
        url_hint,
        ..
    } = at;
    let why = root(error);
    plain(
        FaultKind::Network,
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

/// The answer broke off.
pub(crate) fn broken_off(provider: &str, error: &reqwest::Error) -> ModelFault {
    let message = format!(
        "The connection to {provider} broke off in the middle of the answer ({}): try again.",
        root(error)
    );
    plain(FaultKind::Network, message)
}

pub(crate) fn silent(at: &Endpoint, idle: Duration) -> ModelFault {
    let message = format!(
        "{} at {} sent nothing for {} seconds: try again, choose another model, or raise limits.idle_seconds in the configuration.",
        at.provider,
        at.shown,
        idle.as_secs_f32()
    );
    plain(FaultKind::Timeout, message)
}

/// Nothing but signs of life came.
pub(crate) fn no_content(at: &Endpoint, content: Duration) -> ModelFault {
    let message = format!(
        "{} at {} kept the connection open for {} seconds and sent nothing of an answer: try again, choose another model, or raise limits.content_seconds in the configuration.",
        at.provider,
        at.shown,
        content.as_secs_f32()
    );
    plain(FaultKind::Timeout, message)
}

/// The answer exceeds a bound. The sentence is that of the engine's own limits.
pub(crate) fn too_long(overrun: AnswerOverrun) -> ModelFault {
    plain(FaultKind::AnswerLimit, overrun.to_string())
}

/// The answer was a success, but not a stream of events.
pub(crate) fn no_events(at: &Endpoint, text: &str) -> ModelFault {
    if let Some(said) = Said::within(text) {
        return said.fault(at, None);
    }
    let Endpoint {
        provider,
        shown,
        url_hint,
        ..
    } = at;
    let quote = quote(at, text);
    plain(
        FaultKind::Protocol,
        format!(
            "{provider} at {shown} did not answer with a stream of events ({quote}): check the address, and {url_hint} if it is wrong."
        ),
    )
}

/// The answer came to an end without its terminal event, or in the middle of an event (C-31).
pub(crate) fn unfinished(at: &Endpoint, why: &str) -> ModelFault {
    let why = short(at, why);
    plain(
        FaultKind::Unfinished,
        format!(
            "The answer of {} stopped before it was said to be over ({why}): choose another model, or check what stands between you and {}.",
            at.provider, at.shown
        ),
    )
}

/// The stream was not what the API promises.
pub(crate) fn broken_promise(at: &Endpoint, why: &str) -> ModelFault {
    let why = short(at, why);
    plain(
        FaultKind::Protocol,
        format!(
            "The answer of {} is not complete ({why}): try again.",
            at.provider
        ),
    )
}

/// An answer with the status of an error.
pub(crate) fn of_status(at: &Endpoint, status: u16, headers: &HeaderMap, text: &str) -> Failure {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let said = Said::within(text).unwrap_or_else(|| Said {
        code: String::new(),
        message: text.to_owned(),
        status: None,
    });
    let mut fault = said.fault(at, Some(status));
    if (300..400).contains(&status) {
        let to = short(at, header("location").unwrap_or("elsewhere"));
        fault.message = format!(
            "{} has moved from {} to {to}: {}.",
            at.provider, at.shown, at.url_hint
        );
    }
    fault.retry_after = wait(
        header("retry-after-ms"),
        header("retry-after"),
        std::time::SystemTime::now().into(),
    );
    Failure {
        fault,
        should_retry: header("x-should-retry").and_then(|word| word.parse().ok()),
    }
}

/// How long to wait: milliseconds, else seconds, else a date.
fn wait(millis: Option<&str>, seconds: Option<&str>, now: DateTime<Utc>) -> Option<Duration> {
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

/// An error as a provider put it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Said {
    /// Its type and code, in one text.
    pub(crate) code: String,
    pub(crate) message: String,
    /// A status inside the text.
    pub(crate) status: Option<u16>,
}

impl Said {
    /// The error in a JSON text, in any of the shapes that servers use.
    pub(crate) fn within(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        // Gemini-like servers wrap the object into a list.
        let value = value.get(0).unwrap_or(&value);
        Self::of(value)
    }

    fn of(value: &Value) -> Option<Self> {
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
        // OpenRouter: what the provider behind it said.
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

    /// As a fault; `status` is the HTTP status, if the answer had that of an error.
    pub(crate) fn fault(&self, at: &Endpoint, status: Option<u16>) -> ModelFault {
        let Endpoint {
            provider,
            model,
            shown,
            url_hint,
            ..
        } = at;
        let status = status.or(self.status);
        let quote = quote(at, &self.message);
        let cause = self.cause(status);
        let message = match cause {
            Cause::Key => format!(
                "{provider} refuses the key: check {} ({quote}).",
                at.key_place()
            ),
            Cause::NotAllowed => format!(
                "{provider} does not let this key use {model}: check the account behind {} ({quote}).",
                at.key_place()
            ),
            Cause::NoCredit => format!(
                "The account at {provider} has no credit left: add some, or choose another provider ({quote})."
            ),
            Cause::Overflow => format!(
                "The conversation is longer than {model} can take in: shorten or summarise it, or choose a model with a larger window ({quote})."
            ),
            Cause::NoModel => format!(
                "{provider} has no model called {model:?}, or not for you: choose another ({quote})."
            ),
            Cause::NoPath => format!(
                "There is nothing at {shown}: {url_hint} to the address that ends before /chat/completions or /v1/messages ({quote})."
            ),
            Cause::Busy => format!("{provider} has had too many requests ({quote})."),
            Cause::Overloaded => format!("{provider} is overloaded or broken ({quote})."),
            Cause::Refused => format!("{provider} refuses the request ({quote})."),
        };
        ModelFault {
            kind: cause.kind(),
            message,
            status,
            retry_after: None,
        }
    }

    fn cause(&self, status: Option<u16>) -> Cause {
        let code = self.code.to_ascii_lowercase();
        let message = self.message.to_ascii_lowercase();
        let coded = |words: &[&str]| words.iter().any(|word| code.contains(word));
        let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
        let is_rate = status == Some(429);
        if coded(&["insufficient_quota", "billing"])
            || status == Some(402)
            || says(NO_CREDIT)
            // With 429 it may be that of a minute (Gemini).
            || (status == Some(403) && says(&["quota"]))
        {
            return Cause::NoCredit;
        }
        if !is_rate && (coded(OVERFLOW) || says(OVERFLOW)) {
            return Cause::Overflow;
        }
        if coded(&["model_not_found"]) {
            return Cause::NoModel;
        }
        match status {
            Some(401) => Cause::Key,
            // Gemini says so with 400.
            Some(400) if says(&["api key not valid"]) => Cause::Key,
            // A proxy's page says nothing of a key.
            Some(403) if is_page(&self.message) => Cause::Refused,
            Some(403) => Cause::NotAllowed,
            Some(404) if says(&["model"]) => Cause::NoModel,
            Some(404 | 405 | 300..=399) => Cause::NoPath,
            Some(413) => Cause::Overflow,
            Some(429) => Cause::Busy,
            Some(408 | 500..) => Cause::Overloaded,
            _ if coded(&["authentication", "invalid_api_key"]) => Cause::Key,
            _ if coded(&["permission"]) => Cause::NotAllowed,
            _ if coded(&["rate_limit"]) => Cause::Busy,
            Some(_) => Cause::Refused,
            None if coded(&["invalid_request"]) => Cause::Refused,
            None if coded(&["not_found"]) => Cause::NoModel,
            None => Cause::Overloaded,
        }
    }
}

/// How providers say that an account has to be paid for.
const NO_CREDIT: &[&str] = &[
    "credit balance is too low",
    "insufficient balance",
    "insufficient credit",
    "requires more credits",
];

/// How providers say that a conversation is too long.
const OVERFLOW: &[&str] = &[
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

/// What is behind an error.
#[derive(Clone, Copy)]
enum Cause {
    Key,
    NotAllowed,
    NoCredit,
    Overflow,
    NoModel,
    NoPath,
    Busy,
    Overloaded,
    Refused,
}

impl Cause {
    fn kind(self) -> FaultKind {
        match self {
            Self::Key | Self::NotAllowed => FaultKind::Auth,
            Self::Overflow => FaultKind::ContextOverflow,
            // No other key helps an account without credit.
            Self::NoCredit | Self::NoModel | Self::NoPath | Self::Refused => FaultKind::BadRequest,
            Self::Busy => FaultKind::RateLimit,
            Self::Overloaded => FaultKind::Overloaded,
        }
    }
}

/// The innermost reason: the outer ones repeat the URL.
fn root(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// What a provider said, fit to be shown.
fn quote(at: &Endpoint, text: &str) -> String {
    match short(at, text) {
        words if words.is_empty() => "it did not say why".to_owned(),
        _ if is_page(text) => "it answered with a page for browsers".to_owned(),
        words => format!("it said: {words}"),
    }
}

fn is_page(text: &str) -> bool {
    let start = text.trim_start().get(..5).unwrap_or_default();
    start.eq_ignore_ascii_case("<html") || start.eq_ignore_ascii_case("<!doc")
}

/// A text that holds a provider's words, without the key, and shortened.
fn short(at: &Endpoint, text: &str) -> String {
    let text = at.without_key(&text[..text.floor_char_boundary(LONGEST_ERROR)]);
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = words.char_indices().nth(LONGEST_QUOTE) {
        words.truncate(cut);
        words.push('…');
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_milliseconds_seconds_or_dates() {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let wait = |millis, seconds| wait(millis, seconds, now);
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
        let message = |text| Said::within(text).map(|said| (said.message, said.status));
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
