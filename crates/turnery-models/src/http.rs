//! HTTP transport: one client per process, POST requests with event-stream responses, and timeouts for silent
//! ones.

use crate::{
    attempt::{ByteSource, silence_error},
    endpoint::Endpoint,
    errors::{self, MAX_ERROR_BYTES},
    provider::MissingKeyError,
    retry::AttemptError,
    silence::SilenceTimer,
};
use reqwest::{
    Client, Method, RequestBuilder, Response, Url, header::HeaderValue, redirect::Policy,
};
use secrecy::ExposeSecret as _;
use std::{error::Error, io, net::IpAddr, sync::OnceLock, time::Duration};
use tokio::time::timeout;
use turnery_engine::{ModelError, ModelErrorKind};

/// Largest part read of a document. Unit: bytes.
const MAX_DOCUMENT_BYTES: usize = 4 << 20;

/// Longest time spent reading the body of an error or a document.
const BODY_TIMEOUT: Duration = Duration::from_secs(20);

/// Longest time spent draining a finished response, so that its connection can be reused.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

impl Endpoint {
    /// Returns the key as a header value after `prefix`; `None` if there is none and none is needed.
    fn key_header_value(&self, prefix: &str) -> Result<Option<HeaderValue>, ModelError> {
        let Some(key) = self.key() else {
            if self.key_hint.is_empty() {
                return Ok(None);
            }
            let missing = MissingKeyError {
                provider: self.provider.clone(),
                hint: self.key_hint.clone(),
            };
            return Err(ModelError::new(ModelErrorKind::Auth, missing.to_string()));
        };
        let mut value = HeaderValue::from_str(&format!("{prefix}{}", key.expose_secret()))
            .map_err(|_| {
                ModelError::new(
                    ModelErrorKind::Auth,
                    format!(
                        "The key for {} holds characters that no key has: check {}.",
                        self.provider,
                        self.key_location()
                    ),
                )
            })?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// Returns true if nothing listens at this loopback address: a server that is not running will not start
    /// within seconds, so the error is reported without a retry.
    fn is_refused_locally(&self, error: &reqwest::Error) -> bool {
        let host = self.url.as_ref().ok().and_then(Url::host_str).unwrap_or("");
        let address = host.trim_start_matches('[').trim_end_matches(']').parse();
        let is_here = host == "localhost" || address.is_ok_and(|at: IpAddr| at.is_loopback());
        let mut cause = error.source();
        while let Some(error) = cause {
            let io_error = error.downcast_ref::<io::Error>();
            if io_error.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
                return is_here;
            }
            cause = error.source();
        }
        false
    }

    /// Creates a request with the key in the header `key_header`, after `key_prefix`.
    fn build_request(
        &self,
        method: Method,
        (key_header, key_prefix): (&'static str, &'static str),
        headers: &[(&'static str, &'static str)],
    ) -> Result<RequestBuilder, ModelError> {
        let url = self
            .url
            .clone()
            .map_err(|why| errors::invalid_url(self, &why))?;
        let key_header_value = self.key_header_value(key_prefix)?;
        let mut request = shared_client(url.scheme() == "https")
            .map_err(|error| errors::client_setup_failed(self, &error))?
            .request(method, url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(value) = key_header_value {
            request = request.header(key_header, value);
        }
        Ok(request)
    }

    /// Fetches a document.
    pub(crate) async fn get(
        &self,
        key: (&'static str, &'static str),
        headers: &[(&'static str, &'static str)],
    ) -> Result<String, ModelError> {
        let request = self.build_request(Method::GET, key, headers)?;
        let request = request.header("accept", "application/json");
        let mut silence = self.start_silence_timer(None);
        let sent = self.send(request, &mut silence).await;
        let mut answer = sent.map_err(|failure| failure.error)?;
        let status = answer.response.status();
        let headers = answer.response.headers().clone();
        let text = answer.read_text(MAX_DOCUMENT_BYTES).await;
        match status.is_success() {
            true => Ok(text),
            false => Err(errors::from_status(self, status.as_u16(), &headers, &text).error),
        }
    }

    /// Sends `body`, and waits until the provider starts to respond with events.
    ///
    /// `key` is the header for the key and the prefix of its value.
    pub(crate) async fn post(
        &self,
        body: bytes::Bytes,
        key: (&'static str, &'static str),
        headers: &[(&'static str, &'static str)],
        silence: &mut SilenceTimer<'_>,
    ) -> Result<EventStream, AttemptError> {
        let request = self
            .build_request(Method::POST, key, headers)?
            .header("content-type", "application/json")
            .header("accept", "text/event-stream")
            .body(body);
        let mut events = self.send(request, silence).await?;
        let status = events.response.status();
        let kind = events.response.headers().get("content-type");
        let is_page = kind
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| {
                kind.starts_with("application/json") || kind.starts_with("text/html")
            });
        if status.is_success() && !is_page {
            return Ok(events);
        }
        let headers = events.response.headers().clone();
        let text = events.read_text(MAX_ERROR_BYTES).await;
        Err(if status.is_success() {
            let error = errors::not_an_event_stream(self, &text);
            // A server that returns an HTML page does so again, and may have charged for a response.
            let should_retry = (error.kind == ModelErrorKind::Protocol).then_some(false);
            AttemptError {
                error,
                should_retry,
            }
        } else {
            errors::from_status(self, status.as_u16(), &headers, &text)
        })
    }

    /// Sends a request, and waits until the provider starts to respond.
    async fn send(
        &self,
        request: RequestBuilder,
        silence: &mut SilenceTimer<'_>,
    ) -> Result<EventStream, AttemptError> {
        match silence.wait_for(request.send()).await {
            Ok(Ok(response)) => {
                silence.note_bytes();
                let provider = self.provider.clone();
                Ok(EventStream { provider, response })
            }
            Ok(Err(error)) => Err(AttemptError {
                error: errors::connection_failed(self, &error),
                should_retry: self.is_refused_locally(&error).then_some(false),
            }),
            Err(which) => Err(silence_error(self, silence, which).into()),
        }
    }
}

/// A streaming response. Dropping it closes its connection at once.
pub(crate) struct EventStream {
    provider: String,
    response: Response,
}

impl ByteSource for EventStream {
    async fn next_chunk(&mut self) -> Result<Option<bytes::Bytes>, ModelError> {
        let chunk = self.response.chunk().await;
        chunk.map_err(|error| errors::connection_lost(&self.provider, &error))
    }
}

impl EventStream {
    /// Reads the rest of a finished response in the background, so that the next call can reuse the
    /// connection.
    pub(crate) fn drain(self) {
        let mut response = self.response;
        tokio::spawn(timeout(DRAIN_TIMEOUT, async move {
            while let Ok(Some(_)) = response.chunk().await {}
        }));
    }

    /// Returns the remaining body, up to `most` bytes and a time limit: an error body may be endless.
    async fn read_text(&mut self, most: usize) -> String {
        let mut bytes = Vec::new();
        let read = async {
            while let Ok(Some(chunk)) = self.response.chunk().await {
                let room = most - bytes.len();
                bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
                if bytes.len() == most {
                    break;
                }
            }
        };
        // On a timeout, the part read so far is used.
        let _ = timeout(BODY_TIMEOUT, read).await;
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Returns the process-wide client for HTTP or HTTPS. The HTTPS client loads the system's certificates when it
/// is built, which users of local models need not wait for.
fn shared_client(secure: bool) -> Result<&'static Client, reqwest::Error> {
    static PLAIN: OnceLock<Client> = OnceLock::new();
    static SECURE: OnceLock<Client> = OnceLock::new();
    let slot = if secure { &SECURE } else { &PLAIN };
    if let Some(client) = slot.get() {
        return Ok(client);
    }
    // An error means that a provider is already installed, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(concat!("turnery/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(Duration::from_secs(10))
        .pool_idle_timeout(Duration::from_secs(90))
        .tcp_nodelay(true)
        .tcp_keepalive(Duration::from_secs(30))
        .redirect(Policy::none());
    let builder = if secure {
        builder
    } else {
        builder.tls_certs_only([])
    };
    let client = builder.build()?;
    Ok(slot.get_or_init(|| client))
}

/// Initial capacity of a request body, sufficient for most of them. Unit: bytes.
const BODY_CAPACITY: usize = 32 * 1024;

/// Serializes a request body as JSON.
pub(crate) fn encode_json(content: &impl serde::Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(BODY_CAPACITY);
    serde_json::to_writer(&mut bytes, content)?;
    Ok(bytes)
}
