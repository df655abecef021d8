//! Google's Gemini API.

use super::KnownProvider;
use crate::{provider::Api, schema_dialect::SchemaDialect};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "google",
    base_url: "https://generativelanguage.googleapis.com/v1beta",
    url_variable: "GEMINI_BASE_URL",
    key_variable: "GEMINI_API_KEY",
    key_variable_fallback: "GOOGLE_API_KEY",
    read_url: gemini_url,
    api: Api::Gemini,
    offers_default_model: true,
    models: &[
        "gemini-3.7-flash",
        "gemini-3.1-pro-preview",
        "gemini-3.1-flash-lite",
        "gemini-2.5-pro",
        "gemini-2.5-flash",
    ],
    domain: "googleapis.com",
    schemas: Some(SchemaDialect::Gemini),
    ..KnownProvider::DEFAULT
};

/// Returns the URL with the version of the API, which other programs' values of the variable lack.
fn gemini_url(url: &str) -> String {
    let url = url.trim_end_matches('/');
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    match host.contains('/') {
        true => url.to_owned(),
        false => format!("{url}/v1beta"),
    }
}
