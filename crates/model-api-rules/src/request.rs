//! Defines a request to judge.

use crate::{issued_reasoning::IssuedReasoning, json};
use serde_json::Value;

/// Format of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiFormat {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions and compatible servers.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Gemini `generateContent`.
    Gemini,
}

/// A request to judge.
#[derive(Clone, Copy, Debug)]
pub struct ApiRequest<'a> {
    /// Format of the request.
    pub format: ApiFormat,
    /// Host whose own rules apply beside those that all servers of the format share: `api.groq.com`.
    pub host: Option<&'a str>,
    /// Path of the request with its query.
    pub path: &'a str,
    /// Lines of the head, with names in lower case.
    pub headers: &'a str,
    /// Body of the request.
    pub body: &'a Value,
    /// Reasoning that the server has issued. `None` leaves signatures unjudged.
    pub issued: Option<&'a IssuedReasoning>,
}

impl<'a> ApiRequest<'a> {
    /// Creates a request to the API's own path, with the headers that it needs. Model: the one in the body, for Gemini
    /// `model`.
    #[must_use]
    pub fn new(format: ApiFormat, path: &'a str, body: &'a Value) -> Self {
        Self {
            format,
            host: None,
            path,
            headers: "anthropic-version: 2023-06-01",
            body,
            issued: None,
        }
    }

    /// Returns the name of the model without the path of a reseller.
    #[must_use]
    pub fn model(&self) -> &'a str {
        let name = match self.format {
            ApiFormat::Anthropic | ApiFormat::Chat | ApiFormat::Responses => {
                json::text(self.body, "model")
            }
            ApiFormat::Gemini => {
                let rest = self.path.split_once("/models/");
                rest.and_then(|(_, rest)| rest.split(':').next())
                    .unwrap_or_default()
            }
        };
        name.rsplit('/').next().unwrap_or(name)
    }
}
