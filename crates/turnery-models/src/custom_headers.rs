//! Checks headers of a provider's configuration.

use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};

/// Headers that describe the connection or the body.
const RESERVED_HEADERS: [HeaderName; 6] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::TRANSFER_ENCODING,
    header::ACCEPT,
];

/// Returns headers from a configuration.
///
/// # Errors
///
/// Returns what is wrong with a header, without its value.
pub(crate) fn header_map(headers: &[(String, SecretString)]) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let parsed = name.parse::<HeaderName>();
        let parsed = parsed.map_err(|_| format!("the header {name:?} has no valid name"))?;
        if RESERVED_HEADERS.contains(&parsed) {
            return Err(format!("the header {name} is set by turnery itself"));
        }
        let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| {
            format!("the value of the header {name} holds characters that no header has")
        })?;
        value.set_sensitive(true);
        map.insert(parsed, value);
    }
    Ok(map)
}
