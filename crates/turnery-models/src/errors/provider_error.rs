//! Reads the errors that providers report, and finds out what to do about them.

use super::{overflow, quote, retry_after};
use crate::endpoint::Endpoint;
use serde_json::Value;
use turnery_engine::{ModelError, ModelErrorKind};

/// Error reported by a provider.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ProviderError {
    /// Type, code and status word of the error, joined.
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
        Self::from_value(value.get(0).unwrap_or(&value))
    }

    /// Reads the data of an event that is marked as an error, whatever it contains.
    pub(crate) fn from_error_event(data: &str) -> Self {
        Self::within(data).unwrap_or_else(|| Self {
            message: data.to_owned(),
            ..Self::default()
        })
    }

    /// Returns the error of a response that ended for a reason that is a failure of the server: z.ai and OpenRouter
    /// report failures of their upstream servers like this.
    pub(crate) fn from_stop_reason(reason: &str) -> Option<Self> {
        ["network_error", "error"].contains(&reason).then(|| Self {
            message: format!("the response ended with {reason:?}"),
            ..Self::default()
        })
    }

    fn from_value(value: &Value) -> Option<Self> {
        let error = value
            .get("error")
            .or_else(|| value.pointer("/errors/0"))
            .filter(|error| !error.is_null());
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
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                other.to_string()
            }
        };
        let part = |name: &str| object.get(name).map(text).unwrap_or_default();
        let mut message = message.map_or_else(|| object.to_string(), text);
        // OpenRouter: message of the upstream provider.
        if let Some(raw) = object.pointer("/metadata/raw").and_then(Value::as_str) {
            message = format!("{message}: {raw}");
        }
        let statuses = ["code", "status"].into_iter().filter_map(|name| {
            let status = object.get(name)?.as_u64()?;
            // Other numbers are codes of the provider.
            (400..600).contains(&status).then_some(status)
        });
        Some(Self {
            code: ["type", "code", "status"].map(part).join(" "),
            message,
            status: statuses
                .filter_map(|status| u16::try_from(status).ok())
                .next(),
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
            ErrorCause::Region => format!(
                "{provider} does not serve the region that you call from: choose another provider ({quote})."
            ),
            ErrorCause::NoCredit => format!(
                "The account at {provider} has no credit left: add some, or choose another provider ({quote})."
            ),
            ErrorCause::Overflow => format!(
                "The conversation is longer than {model} can take in: shorten or summarise it, or choose a model with a larger window ({quote})."
            ),
            ErrorCause::BareRefusal => format!(
                "{provider} refuses the request without a reason; most often the conversation is longer than {model} can take in: shorten or summarise it, or choose a model with a larger window."
            ),
            ErrorCause::UnknownModel => format!(
                "{provider} has no model called {model:?}, or does not let you use it ({quote}): choose another model."
            ),
            ErrorCause::Deployment => format!(
                "There is no deployment {model:?} at {shown}: name the deployment instead of the model, or {url_hint} to the resource that has it ({quote})."
            ),
            ErrorCause::UnknownPath => format!(
                "There is nothing at {shown}: {url_hint} to the address without the path of the API, such as /chat/completions, /responses, /v1/messages or /models/… ({quote})."
            ),
            ErrorCause::Busy => format!(
                "{provider} limits the rate of requests ({quote}): try again later, or choose another model."
            ),
            ErrorCause::Overloaded => format!(
                "{provider} is overloaded or broken ({quote}): try again later, or choose another model."
            ),
            ErrorCause::ModelSlip => format!(
                "{model} wrote a tool call that {provider} cannot read ({quote}): try again, or choose another model."
            ),
            ErrorCause::Unsupported => format!(
                "{provider} at {shown} lacks a feature that the request needs: change how the server is started, or choose another model ({quote})."
            ),
            ErrorCause::Refused => format!(
                "{provider} refuses the request ({quote}): change what it objects to, or choose another model."
            ),
        };
        let kind = cause.kind();
        let may_wait = matches!(kind, ModelErrorKind::RateLimit | ModelErrorKind::Overloaded);
        ModelError {
            status,
            retry_after: may_wait
                .then(|| retry_after::from_message(&self.message))
                .flatten(),
            is_about_model: cause.is_about_model(),
            ..ModelError::new(kind, message)
        }
    }

    fn cause(&self, status: Option<u16>) -> ErrorCause {
        let code = self.code.to_ascii_lowercase();
        let message = self.message.to_ascii_lowercase();
        let coded = |words: &[&str]| words.iter().any(|word| code.contains(word));
        let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
        if coded(&["insufficient_quota", "billing"])
            || status == Some(402)
            || says(NO_CREDIT_PHRASES)
            // With status 429 this may be a per-minute quota (Gemini).
            || (status == Some(403) && says(&["quota"]))
        {
            return ErrorCause::NoCredit;
        }
        let text = format!("{code} {message}");
        let is_overflow = match status {
            Some(429) => overflow::is_too_large_for_rate(&text),
            Some(_) | None => overflow::is_overflow(&text),
        };
        if is_overflow {
            return ErrorCause::Overflow;
        }
        if coded(&["tool_use_failed", "malformed_function_call"]) || says(MODEL_SLIP_PHRASES) {
            return ErrorCause::ModelSlip;
        }
        if coded(&["deploymentnotfound"]) {
            return ErrorCause::Deployment;
        }
        if coded(&["unsupported_country"]) || says(&["country, region, or territory"]) {
            return ErrorCause::Region;
        }
        if coded(&["model_not_found"]) {
            return ErrorCause::UnknownModel;
        }
        match status {
            Some(401) => ErrorCause::Key,
            // Gemini and xAI report an invalid key with status 400.
            Some(400) if says(&["api key not valid", "incorrect api key"]) => ErrorCause::Key,
            // An HTML page comes from a proxy and says nothing about the key.
            Some(403) if super::is_html(&self.message) => ErrorCause::Refused,
            Some(403) => ErrorCause::Forbidden,
            Some(404) if says(&["model"]) => ErrorCause::UnknownModel,
            Some(404 | 405 | 300..=399) => ErrorCause::UnknownPath,
            Some(429) => ErrorCause::Busy,
            Some(_) | None if overflow::is_rate_limit(&text) => ErrorCause::Busy,
            Some(413) => ErrorCause::Overflow,
            Some(400) if is_bare(&message) => ErrorCause::BareRefusal,
            Some(501) => ErrorCause::Unsupported,
            Some(500..) if says(UNSUPPORTED_PHRASES) => ErrorCause::Unsupported,
            Some(408 | 500..) => ErrorCause::Overloaded,
            _ if coded(&["authentication", "invalid_api_key"]) => ErrorCause::Key,
            _ if coded(&["permission"]) => ErrorCause::Forbidden,
            Some(_) => ErrorCause::Refused,
            None if code.split_whitespace().any(is_about_request) => ErrorCause::Refused,
            None if coded(&["not_found"]) => ErrorCause::UnknownModel,
            None => ErrorCause::Overloaded,
        }
    }
}

/// Returns true for codes by which a server objects to the request within a stream: it would fail again. The codes of
/// OpenAI Responses are at <https://platform.openai.com/docs/api-reference/responses/object>.
fn is_about_request(code: &str) -> bool {
    code.contains("invalid_request")
        || code.starts_with("invalid_")
        || code.contains("image")
        || matches!(code, "bio_policy" | "data_residency_mismatch")
}

/// Returns true if a refusal has no body, which Cerebras does for a conversation that is too long. Gateways say so in
/// words.
fn is_bare(message: &str) -> bool {
    message.trim().is_empty() || message.contains("status code (no body)")
}

/// Phrases by which providers report missing credit.
const NO_CREDIT_PHRASES: &[&str] = &[
    "credit balance is too low",
    "insufficient balance",
    "insufficient credit",
    "insufficient_quota",
    "requires more credits",
    // z.ai, with status 429.
    "package has expired",
    // Anthropic, with status 429.
    "extra usage is required",
];

/// Phrases about a tool call of the model that the server cannot read: the next attempt may be better. Groq and servers
/// behind OpenRouter report it with a status that means a bad request (quirk 62).
const MODEL_SLIP_PHRASES: &[&str] = &[
    "failed to call a function",
    "failed_generation",
    "tool call validation failed",
    "failed to parse tool call",
    "model generated output that could not be parsed",
    "malformed function call",
    "malformed tool call",
    "malformed_function_call",
];

/// Phrases about features that a server lacks: another attempt fails in the same way. llama.cpp reports them with status
/// 500 (quirk 61).
const UNSUPPORTED_PHRASES: &[&str] = &[
    "--jinja",
    "does not support",
    "doesn't support",
    "not supported",
    "unsupported",
    "mmproj",
    "failed to parse grammar",
    "failed to initialize samplers",
    "unable to generate parser for this template",
    "jinja exception",
    "roles must alternate",
];

/// Cause of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorCause {
    Key,
    Forbidden,
    Region,
    NoCredit,
    Overflow,
    BareRefusal,
    UnknownModel,
    Deployment,
    UnknownPath,
    Busy,
    Overloaded,
    ModelSlip,
    Unsupported,
    Refused,
}

impl ErrorCause {
    fn kind(self) -> ModelErrorKind {
        match self {
            Self::Key | Self::Forbidden => ModelErrorKind::Auth,
            // A refusal without a reason counts as overflow, because shortening the conversation may help.
            Self::Overflow | Self::BareRefusal => ModelErrorKind::ContextOverflow,
            // Another key does not help an account without credit, nor from a region that is not served.
            Self::Region
            | Self::NoCredit
            | Self::UnknownModel
            | Self::Deployment
            | Self::UnknownPath
            | Self::Unsupported
            | Self::Refused => ModelErrorKind::BadRequest,
            Self::Busy => ModelErrorKind::RateLimit,
            Self::Overloaded => ModelErrorKind::Overloaded,
            Self::ModelSlip => ModelErrorKind::Protocol,
        }
    }

    /// Returns true if another model may accept the same request.
    fn is_about_model(self) -> bool {
        match self {
            Self::Key
            | Self::Forbidden
            | Self::Region
            | Self::NoCredit
            | Self::UnknownModel
            | Self::Deployment
            | Self::UnknownPath
            | Self::Busy
            | Self::Overloaded
            | Self::ModelSlip
            | Self::Unsupported => true,
            Self::Overflow | Self::BareRefusal | Self::Refused => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_found_in_every_shape() {
        let message =
            |text| ProviderError::within(text).map(|reported| (reported.message, reported.status));
        let says = |text: &str, status| Some((text.to_owned(), status));
        assert_eq!(
            message(r#"{"error":{"message":"a","code":502}}"#),
            says("a", Some(502))
        );
        // A number outside the range of HTTP is a code of the provider.
        assert_eq!(
            message(r#"{"error":{"message":"a","code":1261}}"#),
            says("a", None)
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
        assert_eq!(
            message(r#"{"success":false,"errors":[{"code":5021,"message":"h"}]}"#),
            says("h", None)
        );
        assert_eq!(message(r#"{"choices":[]}"#), None);
        assert_eq!(message("<html>"), None);
    }

    #[test]
    fn causes_are_found_by_code_text_and_status() {
        use ErrorCause::{
            BareRefusal, Busy, Deployment, Key, ModelSlip, NoCredit, Overflow, Overloaded, Refused,
            Region, UnknownModel, Unsupported,
        };
        let cases = [
            (Some(400), "", "", BareRefusal),
            (Some(400), "", "400 status code (no body)", BareRefusal),
            (Some(413), "", "", Overflow),
            (Some(500), "", "Context size has been exceeded.", Overflow),
            (None, "", "prompt is too long: 9 > 8", Overflow),
            (Some(429), "", "prompt is too long: 9 > 8", Busy),
            (
                Some(429),
                "tokens",
                "Request too large for m on TPM: Limit 8, Requested 9",
                Overflow,
            ),
            (
                Some(400),
                "ThrottlingException",
                "Too many tokens, please wait before trying again.",
                Busy,
            ),
            (None, "rate_limit_exceeded", "slow down", Busy),
            (
                Some(400),
                "tool_use_failed",
                "Failed to call a function.",
                ModelSlip,
            ),
            (
                Some(502),
                "",
                "Provider returned error: Malformed tool call",
                ModelSlip,
            ),
            (
                Some(500),
                "server_error",
                "tools param requires --jinja flag",
                Unsupported,
            ),
            (
                Some(500),
                "",
                "image input is not supported - hint: provide the mmproj",
                Unsupported,
            ),
            (
                Some(501),
                "not_supported_error",
                "This server does not do that.",
                Unsupported,
            ),
            (Some(500), "", "Loading model", Overloaded),
            (Some(503), "unavailable_error", "Loading model", Overloaded),
            (
                Some(404),
                "DeploymentNotFound",
                "The API deployment for this resource does not exist.",
                Deployment,
            ),
            (
                Some(403),
                "unsupported_country_region_territory",
                "no",
                Region,
            ),
            (
                Some(404),
                "not_found_error",
                "model: claude-9",
                UnknownModel,
            ),
            (
                Some(400),
                "",
                "Incorrect API key provided: ab***. You can obtain one",
                Key,
            ),
            (
                Some(429),
                "1113",
                "Insufficient balance or no resource package. Please recharge.",
                NoCredit,
            ),
            (Some(400), "invalid_request_error", "no", Refused),
            (None, "invalid_request_error", "no", Refused),
            (None, "invalid_prompt", "no", Refused),
            (None, "error image_too_large", "no", Refused),
            (None, "server_error", "no", Overloaded),
            (Some(422), "", "no", Refused),
        ];
        for (status, code, message, expected) in cases {
            let error = ProviderError {
                code: code.to_owned(),
                message: message.to_owned(),
                status: None,
            };
            assert_eq!(error.cause(status), expected, "{status:?} {code} {message}");
        }
    }
}
