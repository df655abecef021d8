//! Connects to servers over streamable HTTP.

use super::{
    client_handler::McpClientHandler,
    transport::{ConnectedClient, Transport, initialize},
};
use futures_util::future::BoxFuture;
use reqwest::{
    Client,
    header::{HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};
use rmcp::transport::{
    StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
};
use std::{collections::HashMap, time::Duration};

/// A longer event ends its stream. Unit: bytes.
const MAX_EVENT_BYTES: usize = 32 << 20;
/// Maximum number of redirects followed, all to the server's own origin.
const MAX_REDIRECTS: usize = 5;
/// Headers that the protocol sets.
const RESERVED_HEADERS: [&str; 3] = ["accept", "last-event-id", "mcp-session-id"];

/// Transport to a server over streamable HTTP.
pub(super) struct HttpTransport {
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
}

impl Transport for HttpTransport {
    fn connect(&self, handler: McpClientHandler) -> BoxFuture<'_, Result<ConnectedClient, String>> {
        Box::pin(async move {
            let config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str())
                .custom_headers(build_headers(&self.headers)?)
                .max_sse_event_size(MAX_EVENT_BYTES);
            let client = build_client(self.url.starts_with("https:"))?;
            let transport = StreamableHttpClientTransport::with_client(client, config);
            Ok(ConnectedClient {
                service: initialize(handler, transport).await?,
                process: None,
            })
        })
    }
}

/// Converts the headers exactly as given (MCP-5). Values of the same name are joined to a list, which is
/// equivalent.
fn build_headers(given: &[(String, String)]) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let mut joined: HeaderMap<Vec<u8>> = HeaderMap::default();
    for (name, value) in given {
        let header = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("{name:?} cannot be the name of a header"))?;
        if RESERVED_HEADERS.contains(&header.as_str()) {
            return Err(format!(
                "the header {header} is the protocol's own: leave it out"
            ));
        }
        match joined.entry(header) {
            reqwest::header::Entry::Occupied(mut before) => {
                let list = before.get_mut();
                list.extend_from_slice(b", ");
                list.extend_from_slice(value.as_bytes());
            }
            reqwest::header::Entry::Vacant(place) => {
                place.insert(value.clone().into_bytes());
            }
        }
    }
    joined
        .iter()
        .map(|(name, value)| {
            let mut value = HeaderValue::from_bytes(value)
                .map_err(|_| format!("the value of the header {name} cannot be sent"))?;
            value.set_sensitive(true);
            Ok((name.clone(), value))
        })
        .collect()
}

/// Creates an HTTP client that refuses redirects to another origin, so headers are sent to no other server.
/// `secure`: load the system's certificates.
fn build_client(secure: bool) -> Result<Client, String> {
    // An error means that a provider is installed already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(concat!("turnery/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(Duration::from_secs(10))
        .redirect(Policy::custom(|step| {
            let first = step.previous().first().map(reqwest::Url::origin);
            let stays = first.is_some_and(|first| first == step.url().origin());
            match stays && step.previous().len() <= MAX_REDIRECTS {
                true => step.follow(),
                false => step.error("it redirects to another host or too often"),
            }
        }));
    // Loading the system's certificates is slow, and plain HTTP does not need them.
    let builder = match secure {
        true => builder,
        false => builder.tls_certs_only([]),
    };
    let client = builder.build();
    client.map_err(|_| "HTTP cannot be used here: there are no certificates".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_sent_as_given() {
        let given = [("X-A", "é \""), ("x-b", ""), ("x-a", "2")];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let headers = build_headers(&given).unwrap();
        assert_eq!(headers.len(), 2);
        assert_eq!(
            headers[&HeaderName::from_static("x-a")].as_bytes(),
            "é \", 2".as_bytes()
        );
        assert_eq!(headers[&HeaderName::from_static("x-b")].as_bytes(), b"");
        assert!(!format!("{headers:?}").contains('2'), "{headers:?}");
    }

    #[test]
    fn invalid_header_error_omits_its_value() {
        let one = |name: &str, value: &str| build_headers(&[(name.to_owned(), value.to_owned())]);
        assert_eq!(
            one("a b", "secret").unwrap_err(),
            "\"a b\" cannot be the name of a header"
        );
        assert_eq!(
            one("Accept", "secret").unwrap_err(),
            "the header accept is the protocol's own: leave it out"
        );
        assert_eq!(
            one("x-a", "sec\nret").unwrap_err(),
            "the value of the header x-a cannot be sent"
        );
    }
}
