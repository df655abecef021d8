//! HTTP: one client per process, a POST that answers with events, and a reader that notices silence.

use crate::{
    fault,
    provider::{CallLimits, ProviderConfig, key_variable, url_hint, without_credentials},
    retry::Failure,
};
use reqwest::{Client, Response, Url, header::HeaderValue, redirect::Policy};
use secrecy::{ExposeSecret, SecretString};
use std::{error::Error, io, net::IpAddr, sync::OnceLock, time::Duration};
use tokio::time::timeout;
use turnery_engine::{FaultKind, ModelFault};

/// How much of an answer that reports an error is read. Unit: bytes.
const LONGEST_ERROR: usize = 64 * 1024;

/// How long the rest of an answer is awaited, so that its connection can be used again.
const DRAIN: Duration = Duration::from_secs(2);

/// Where the calls of one provider go.
pub(crate) struct Endpoint {
    pub(crate) provider: String,
    pub(crate) model: String,
    url: Result<Url, String>,
    /// The base URL, to show.
    pub(crate) shown: String,
    key: Option<SecretString>,
    key_hint: String,
    pub(crate) url_hint: String,
    idle: Duration,
}

impl Endpoint {
    /// The endpoint of `model` at `path` below the provider's base URL. Touches nothing yet.
    pub(crate) fn new(
        config: &ProviderConfig,
        model: &str,
        path: &str,
        limits: &CallLimits,
    ) -> Self {
        let base = config.base_url.trim_end_matches('/');
        let path = match path.strip_prefix("/v1") {
            Some(rest) if base.ends_with("/v1") => rest,
            Some(_) | None => path,
        };
        let is_local = config.key_hint.is_empty();
        Self {
            provider: config.name.clone(),
            model: model.to_owned(),
            url: Url::parse(&format!("{base}{path}")).map_err(|error| error.to_string()),
            shown: without_credentials(base),
            key: config.key.clone(),
            key_hint: config.key_hint.clone(),
            url_hint: url_hint(&config.name),
            idle: if is_local {
                limits.idle_local
            } else {
                limits.idle
            },
        }
    }

    /// What a person sets to give another key.
    pub(crate) fn key_place(&self) -> String {
        if self.key_hint.is_empty() {
            key_variable(&self.provider)
        } else {
            self.key_hint.clone()
        }
    }

    /// `text` without the key, should a server have echoed it.
    pub(crate) fn without_key(&self, text: &str) -> String {
        match self.key.as_ref().map(ExposeSecret::expose_secret) {
            Some(key) if !key.is_empty() => text.replace(key, "[key]"),
            Some(_) | None => text.to_owned(),
        }
    }

    /// The key as a header's value, after `prefix`; `None` when there is none and none is needed.
    fn credential(&self, prefix: &str) -> Result<Option<HeaderValue>, ModelFault> {
        let Some(key) = &self.key else {
            if self.key_hint.is_empty() {
                return Ok(None);
            }
            return Err(fault::plain(
                FaultKind::Auth,
                format!(
                    "There is no key for {}: set {}.",
                    self.provider, self.key_hint
                ),
            ));
        };
        let mut value = HeaderValue::from_str(&format!("{prefix}{}", key.expose_secret()))
            .map_err(|_| {
                fault::plain(
                    FaultKind::Auth,
                    format!(
                        "The key for {} holds characters that no key has: check {}.",
                        self.provider,
                        self.key_place()
                    ),
                )
            })?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// Whether nothing listens at an address of this machine: a server that is not running will not
    /// be a few seconds later either, and whoever waits for it is told at once.
    fn is_turned_away(&self, error: &reqwest::Error) -> bool {
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

    /// Send `body`, and wait until the provider begins to answer with events.
    ///
    /// The key goes into the header `key_header`, after `key_prefix`.
    pub(crate) async fn post(
        &self,
        body: bytes::Bytes,
        (key_header, key_prefix): (&'static str, &'static str),
        headers: &[(&'static str, &'static str)],
    ) -> Result<Events<'_>, Failure> {
        let url = self.url.clone().map_err(|why| fault::bad_url(self, &why))?;
        let credential = self.credential(key_prefix)?;
        let mut request = client(url.scheme() == "https")
            .map_err(|error| fault::no_client(self, &error))?
            .post(url)
            .header("content-type", "application/json")
            .header("accept", "text/event-stream")
            .body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(value) = credential {
            request = request.header(key_header, value);
        }
        let response = match timeout(self.idle, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                return Err(Failure {
                    fault: fault::network(self, &error),
                    should_retry: self.is_turned_away(&error).then_some(false),
                });
            }
            Err(_) => return Err(fault::silent(self, self.idle).into()),
        };
        let status = response.status();
        let kind = response.headers().get("content-type");
        let is_page = kind
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| {
                kind.starts_with("application/json") || kind.starts_with("text/html")
            });
        let mut events = Events {
            endpoint: self,
            response,
        };
        if status.is_success() && !is_page {
            return Ok(events);
        }
        let headers = events.response.headers().clone();
        let text = events.error_text().await;
        Err(if status.is_success() {
            fault::no_events(self, &text).into()
        } else {
            fault::of_status(self, status.as_u16(), &headers, &text)
        })
    }
}

/// An answer that streams. Dropping it closes its connection at once.
pub(crate) struct Events<'a> {
    endpoint: &'a Endpoint,
    response: Response,
}

impl Events<'_> {
    /// The next bytes; `None` at the end of the answer.
    pub(crate) async fn chunk(&mut self) -> Result<Option<bytes::Bytes>, ModelFault> {
        let idle = self.endpoint.idle;
        match timeout(idle, self.response.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(error)) => Err(fault::broken_off(self.endpoint, &error)),
            Err(_) => Err(fault::silent(self.endpoint, idle)),
        }
    }

    /// All has been said: read what little is left beside the caller, so that the next call finds
    /// the connection open.
    pub(crate) fn finish(self) {
        let mut response = self.response;
        tokio::spawn(timeout(DRAIN, async move {
            while let Ok(Some(_)) = response.chunk().await {}
        }));
    }

    async fn error_text(&mut self) -> String {
        let mut bytes = Vec::new();
        while let Ok(Some(chunk)) = self.chunk().await {
            let room = LONGEST_ERROR - bytes.len();
            bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if bytes.len() == LONGEST_ERROR {
                break;
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The process's client for plain HTTP, or for HTTPS: the latter loads the system's certificates
/// when it is built, which someone with a local model should not have to wait for.
fn client(secure: bool) -> Result<&'static Client, reqwest::Error> {
    static PLAIN: OnceLock<Client> = OnceLock::new();
    static SECURE: OnceLock<Client> = OnceLock::new();
    let slot = if secure { &SECURE } else { &PLAIN };
    if let Some(client) = slot.get() {
        return Ok(client);
    }
    // An error means that a provider is installed already, which serves as well.
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

/// The room that a request body gets at once. Unit: bytes. Most bodies fit, so that they need not move.
const BODY: usize = 32 * 1024;

/// A request body as JSON.
pub(crate) fn body(content: &impl serde::Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(BODY);
    serde_json::to_writer(&mut bytes, content)?;
    Ok(bytes)
}
