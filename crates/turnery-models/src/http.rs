//! HTTP transport: clients shared by the process, POST requests with event-stream responses, and timeouts for silent
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
    Certificate, Client, Method, RequestBuilder, Response, Url, header::HeaderValue,
    redirect::Policy,
};
use secrecy::ExposeSecret as _;
use std::{
    error::Error,
    fs, io,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::timeout;
use turnery_engine::{ModelError, ModelErrorKind};

/// Largest part read of a document. Unit: bytes.
const MAX_DOCUMENT_BYTES: usize = 4 << 20;

/// Longest time until a connection is made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

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
        let is_here = self.url.as_ref().is_ok_and(is_loopback);
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
        let own_headers = self.headers.clone();
        let own_headers = own_headers.map_err(|why| errors::invalid_headers(self, &why))?;
        let client = self.client(&url)?;
        let mut request = client.request(method, url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(value) = key_header_value {
            request = request.header(key_header, value);
        }
        // Replaces headers of the same name, such as the one for the key.
        Ok(request.headers(own_headers))
    }

    /// Returns the client for `url`.
    fn client(&self, url: &Url) -> Result<Client, ModelError> {
        let kind = ClientKind {
            is_secure: url.scheme() == "https",
            is_local: is_loopback(url),
            ca_file: self.ca_file.clone(),
        };
        let certificates = |path: &Path| {
            let read = fs::read(path).map_err(|error| error.to_string());
            let parsed = read.and_then(|pem| {
                let parsed = Certificate::from_pem_bundle(&pem);
                parsed.map_err(|error| error.to_string())
            });
            match parsed {
                Ok(certificates) if certificates.is_empty() => Err("it holds none".to_owned()),
                parsed => parsed,
            }
            .map_err(|why| errors::invalid_certificates(self, path, &why))
        };
        let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.iter().find(|(it, _)| *it == kind) {
            return Ok(client.clone());
        }
        let roots = kind.ca_file.as_deref().map(certificates).transpose()?;
        let client = build_client(&kind, roots.unwrap_or_default())
            .map_err(|error| errors::client_setup_failed(self, &error))?;
        clients.push((kind, client.clone()));
        Ok(client)
    }

    /// Fetches a document.
    pub(crate) async fn get(
        &self,
        key: (&'static str, &'static str),
        headers: &[(&'static str, &'static str)],
    ) -> Result<String, ModelError> {
        self.fetch_document(self.build_request(Method::GET, key, headers)?)
            .await
    }

    /// Sends a JSON `body`, and returns the document that answers it.
    pub(crate) async fn ask(
        &self,
        body: String,
        key: (&'static str, &'static str),
        headers: &[(&'static str, &'static str)],
    ) -> Result<String, ModelError> {
        let request = self.build_request(Method::POST, key, headers)?;
        let request = request.header("content-type", "application/json");
        self.fetch_document(request.body(body)).await
    }

    async fn fetch_document(&self, request: RequestBuilder) -> Result<String, ModelError> {
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
                should_retry: (self.is_refused_locally(&error)
                    || errors::certificate_error(&error).is_some())
                .then_some(false),
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

/// Clients of the process by kind: each keeps its connections for the next call. There are as many as there are
/// certificate files in the configuration, and a few more.
static CLIENTS: Mutex<Vec<(ClientKind, Client)>> = Mutex::new(Vec::new());

/// Settings in which the clients of the process differ.
#[derive(PartialEq)]
struct ClientKind {
    /// A client for HTTPS loads the system's certificates when it is built, which users of local models need not wait
    /// for.
    is_secure: bool,
    /// A client for this machine ignores the proxy of the environment, which cannot reach it.
    is_local: bool,
    ca_file: Option<PathBuf>,
}

/// Creates a client. Proxies come from `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`; on Linux
/// `SSL_CERT_FILE` and `SSL_CERT_DIR` replace the system's certificates.
fn build_client(kind: &ClientKind, roots: Vec<Certificate>) -> Result<Client, reqwest::Error> {
    // An error means that a provider is already installed, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(concat!("turnery/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(Duration::from_secs(90))
        .tcp_nodelay(true)
        .tcp_keepalive(Duration::from_secs(30))
        .redirect(Policy::none());
    let builder = match kind.is_secure {
        true => builder.tls_certs_merge(roots),
        false => builder.tls_certs_only([]),
    };
    match kind.is_local {
        true => builder.no_proxy(),
        false => builder,
    }
    .build()
}

/// Returns true for addresses of this machine.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    host == "localhost" || address.is_ok_and(|at: IpAddr| at.is_loopback())
}

/// Initial capacity of a request body, sufficient for most of them. Unit: bytes.
const BODY_CAPACITY: usize = 32 * 1024;

/// Serializes a request body as JSON.
pub(crate) fn encode_json(content: &impl serde::Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(BODY_CAPACITY);
    serde_json::to_writer(&mut bytes, content)?;
    Ok(bytes)
}
