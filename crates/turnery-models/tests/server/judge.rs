//! Judges the requests to the fake server by the rules of the real APIs.

use super::error_response;
use model_api_rules::{ApiFormat, ApiRequest, judge, record};
use serde_json::Value;
use std::sync::Mutex;

/// Judge of one server. It remembers what it refused, since the error of a call may not matter to a test.
#[derive(Default)]
pub(crate) struct Judge {
    refusals: Mutex<Vec<String>>,
}

impl Judge {
    /// Returns the response with status 400 to a request that the real API would refuse.
    pub(super) fn refusal(&self, (head, body): &(String, Value)) -> Option<Vec<u8>> {
        let path = head.split_ascii_whitespace().nth(1).unwrap_or_default();
        let format = format_of(path)?;
        let request = ApiRequest {
            headers: head,
            ..ApiRequest::new(format, path, body)
        };
        let Err(violation) = judge(&request) else {
            record(&request).expect("a file for the request");
            return None;
        };
        let error = violation.to_body(format);
        let mut refusals = self.refusals.lock().expect("the refusals");
        refusals.push(format!("{error} for {body}"));
        Some(error_response("400 Bad Request", "", &error))
    }

    /// Fails if a request was refused.
    pub(super) fn assert_nothing_refused(&self) {
        let refusals = self.refusals.lock().expect("the refusals");
        assert!(refusals.is_empty(), "the real API refuses: {refusals:#?}");
    }
}

/// Returns the format of requests to a path; `None` for lists of models and the like.
fn format_of(path: &str) -> Option<ApiFormat> {
    match path {
        _ if path.ends_with("/v1/messages") => Some(ApiFormat::Anthropic),
        _ if path.ends_with("/chat/completions") => Some(ApiFormat::Chat),
        _ if path.ends_with("/responses") => Some(ApiFormat::Responses),
        _ if path.contains(":streamGenerateContent") => Some(ApiFormat::Gemini),
        _ => None,
    }
}
