//! Reads `[providers.NAME]`: a provider of models.

use super::{
    reader::Document,
    value_source::{ValueSource, check_values},
    values::{FromText, deserialize_text, parse_named},
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use turnery_models::Api;

/// One provider of models.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProviderEntry {
    /// API that the provider speaks.
    #[serde(default, deserialize_with = "deserialize_text")]
    pub(crate) api: Option<ApiName>,
    /// Address of the provider, for example `http://localhost:11434/v1`. No credentials in it.
    // Without a trailing slash once the file is read.
    pub(crate) base_url: Option<String>,
    /// Environment variable that holds its key.
    pub(crate) key_env: Option<String>,
    /// File that holds its key. Only you may be able to read it (chmod 600).
    pub(crate) key_file: Option<String>,
    /// Headers sent with every request, for example for a gateway.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, ValueSource>,
    /// File with root certificates (PEM) to trust in addition to those of the system.
    pub(crate) ca_file: Option<String>,
    /// Models to offer in lists; any other name is tried as well.
    #[serde(default)]
    pub(crate) models: Vec<String>,
    /// Line of the table in its file, from 1.
    #[serde(skip)]
    pub(crate) line: usize,
}

/// Name of an API in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(crate) enum ApiName {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, and all servers that copy it.
    OpenAi,
    /// OpenAI Responses, the default for OpenAI's own models.
    #[schemars(rename = "openai_responses")]
    OpenAiResponses,
    /// Gemini `generateContent`; the address ends in the version, as in `/v1beta`.
    Gemini,
}

impl From<ApiName> for Api {
    fn from(word: ApiName) -> Self {
        match word {
            ApiName::Anthropic => Self::Anthropic,
            ApiName::OpenAi => Self::OpenAi,
            ApiName::OpenAiResponses => Self::OpenAiResponses,
            ApiName::Gemini => Self::Gemini,
        }
    }
}

impl FromText for ApiName {
    fn parse(text: &str) -> Result<Self, String> {
        let name = |word| match word {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai_responses",
            Self::Gemini => "gemini",
        };
        let all = [
            Self::Anthropic,
            Self::OpenAi,
            Self::OpenAiResponses,
            Self::Gemini,
        ];
        parse_named(text, "API", all, name)
    }
}

/// Reads the name of an API, as in the file.
pub(crate) fn parse_api(text: &str) -> Result<Api, String> {
    ApiName::parse(text).map(Api::from)
}

impl ProviderEntry {
    /// Completes the entry `name`, and reports what is wrong with it.
    pub(super) fn check(&mut self, name: &str, document: &mut Document<'_>) {
        let path = ["providers", name];
        self.line = document.line(&path);
        if name.is_empty() || name.contains(['/', ':']) || ["offline", "scripted"].contains(&name) {
            document.report(
                &path,
                "this name cannot be used for a provider; choose another",
            );
        }
        if let Some(url) = &mut self.base_url {
            match normalize_base_url(url) {
                Ok(checked) => *url = checked,
                Err(error) => document.report(&["providers", name, "base_url"], &error),
            }
        }
        check_values(&["providers", name, "headers"], &self.headers, document);
        if self.key_env.is_some() && self.key_file.is_some() {
            document.report(&path, "key_env and key_file are both set; keep one of them");
        }
    }
}

/// Checks a base URL, and returns it without trailing slashes. It must contain no credentials, since it is
/// stored with every prompt and shown.
fn normalize_base_url(url: &str) -> Result<String, String> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))
        .ok_or("must begin with https:// or http://")?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err("names no host".to_owned());
    }
    if host.contains('@') {
        return Err("must hold no user or password; use key_env or key_file".to_owned());
    }
    if rest.contains(['?', '#']) {
        return Err("must end with the path: no ? and no #".to_owned());
    }
    Ok(url.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_url_with_credentials_or_query_is_rejected() {
        assert_eq!(
            normalize_base_url("https://h/v1/"),
            Ok("https://h/v1".to_owned())
        );
        assert_eq!(
            normalize_base_url("h:80"),
            Err("must begin with https:// or http://".to_owned())
        );
        assert_eq!(
            normalize_base_url("http:///x"),
            Err("names no host".to_owned())
        );
        assert_eq!(
            normalize_base_url("http://h/?key=1"),
            Err("must end with the path: no ? and no #".to_owned())
        );
    }
}
