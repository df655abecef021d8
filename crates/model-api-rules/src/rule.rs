//! Defines a rule of an API and its violation.

use crate::{
    check::Check,
    request::{ApiFormat, ApiRequest},
};
use serde_json::json;

/// Something that an API refuses.
#[derive(Debug)]
pub struct Rule {
    /// Short name.
    pub name: &'static str,
    /// Documentation or public issue that shows the refusal.
    pub source: &'static str,
    pub(crate) check: fn(&ApiRequest<'_>) -> Check,
}

impl Rule {
    pub(crate) fn violation(&self, request: &ApiRequest<'_>) -> Option<Violation> {
        let message = (self.check)(request).err()?;
        Some(Violation {
            rule: self.name,
            source: self.source,
            message,
        })
    }
}

/// Refusal of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Name of the rule.
    pub rule: &'static str,
    /// Source of the rule.
    pub source: &'static str,
    /// Place and kind of the error.
    pub message: String,
}

impl Violation {
    /// Returns the body of the response with status 400, in the form of the API.
    #[must_use]
    pub fn to_body(&self, format: ApiFormat) -> String {
        let Self {
            rule,
            source,
            message,
        } = self;
        let message = format!("{message} (rule: {rule}, see {source})");
        let body = match format {
            ApiFormat::Anthropic => json!({
                "type": "error",
                "error": {"type": "invalid_request_error", "message": message},
            }),
            ApiFormat::Chat | ApiFormat::Responses => json!({
                "error": {"message": message, "type": "invalid_request_error", "param": null, "code": null},
            }),
            ApiFormat::Gemini => json!({
                "error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"},
            }),
        };
        body.to_string()
    }
}
