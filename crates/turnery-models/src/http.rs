//! HTTP: one client per process, a POST that answers with events, and a reader that notices silence.

use crate::{
    DeltaSender,
    attempt::{Source, too_silent},
    fault,
    provider::{
        CallLimits, MissingKey, ProviderConfig, Providers, key_variable, url_hint,
        without_credentials,
    },
    redact,
    retry::Failure,
    silence::{Silence, SilenceLimits},
};
use reqwest::{
    Client, Method, RequestBuilder, Response, Url, header::HeaderValue, redirect::Policy,
};
use secrecy::{ExposeSecret, SecretString};
use std::{
    error::Error,
    io,
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::time::timeout;
use turnery_engine::{FaultKind, ModelFault};

/// How much of an answer that reports an error is read. Unit: bytes.
pub(crate) const LONGEST_ERROR: usize = 64 * 1024;

/// How much of a document is read. Unit: bytes.
const LONGEST_DOCUMENT: usize = 4 << 20;

/// How long the text of an error or of a document is awaited.
const LONGEST_TEXT: Duration = Duration::from_secs(20);

/// How long the rest of an answer is awaited, so that its connection can be used again.
const DRAIN: Duration = Duration::from_secs(2);

/// Where the calls of one provider go.
pub(crate) struct Endpoint {
    pub(crate) provider: String,
    pub(crate) model: String,
    url: Result<Url, String>,
    /// The base URL, to show.
    pub(crate) shown: String,
    base_url: String,
    /// As it was at first.
    key: Option<SecretString>,
    /// Who knows the key as it is now.
    live: Option<Arc<dyn Providers>>,
    key_hint: String,
    pub(crate) url_hint: String,
    silence: SilenceLimits,
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
            base_url: config.base_url.clone(),
            key: config.key.clone(),
            live: None,
            key_hint: config.key_hint.clone(),
            url_hint: url_hint(&config.name),
            silence: SilenceLimits::new(limits, is_local),
        }
    }

    /// The clocks of a new attempt. `out` receives the notices.
    pub(crate) fn silence<'a>(&self, out: Option<&'a DeltaSender>) -> Silence<'a> {
        Silence::new(self.silence, out)
    }

    /// The same; its key is looked up at each call.
    pub(crate) fn live(self, providers: Arc<dyn Providers>) -> Self {
        Self {
            live: Some(providers),
            ..self
        }
    }

    /// The key as it is now. One for another address is not sent to this one.
    fn key(&self) -> Option<SecretString> {
        let providers = self.live.as_ref().map(|live| live.now());
        let here = |it: &&ProviderConfig| it.name == self.provider && it.base_url == self.base_url;
        match providers.as_ref().and_then(|all| all.iter().find(here)) {
            Some(provider) => provider.key.clone(),
            None => self.key.clone(),
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

    /// `text` without the key, should a server have echoed it in whatever form.
    pub(crate) fn without_key(&self, text: &str) -> String {
        let (first, now) = (self.key.as_ref(), self.key());
        let keys = [first, now.as_ref()].into_iter().flatten();
        keys.fold(text.to_owned(), |text, key| {
            redact::without_key(&text, key.expose_secret())
        })
    }

    /// The key as a header's value, after `prefix`; `None` when there is none and none is needed.
    fn credential(&self, prefix: &str) -> Result<Option<HeaderValue>, ModelFault> {
        let Some(key) = self.key() else {
            if self.key_hint.is_empty() {
                return Ok(None);
            }
            let missing = MissingKey {
                provider: self.provider.clone(),
                hint: self.key_hint.clone(),
            };
            return Err(fault::plain(FaultKind::Auth, missing.to_string()));
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

    /// A request with the key in the header `key_header`, after `key_prefix`.
    fn request(
        &self,
        method: Method,
        (key_header, key_prefix): (&'static str, &'static str),
        headers: &[(&'static str, &'static str)],
    ) -> Result<RequestBuilder, ModelFault> {
        let url = self.url.clone().map_err(|why| fault::bad_url(self, &why))?;
        let credential = self.credential(key_prefix)?;
        let mut request = client(url.scheme() == "https")
            .map_err(|error| fault::no_client(self, &error))?
            .request(method, url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(value) = credential {
            request = request.header(key_header, value);
        }
        Ok(request)
    }

    /// Ask for a document, and read it.
    pub(crate) async fn get(
        &self,
        key: (&'static str, &'static str),
        headers: &[(&'static str, &'static str)],
    ) -> Result<String, ModelFault> {
        let request = self.request(Method::GET, key, headers)?;
        let request = request.header("accept", "application/json");
        let mut silence = self.silence(None);
        let sent = self.send(request, &mut silence).await;
        let mut answer = sent.map_err(|failure| failure.fault)?;
        let status = answer.response.status();
        let headers = answer.response.headers().clone();
        let text = answer.text(LONGEST_DOCUMENT).await;
        match status.is_success() {
            true => Ok(text),
            false => Err(fault::of_status(self, status.as_u16(), &headers, &text).fault),
        }
    }

    /// Send `body`, and wait until the provider begins to answer with events.
    ///
    /// The key goes into the header that `key` names, after what stands there.
    pub(crate) async fn post(
        &self,
        body: bytes::Bytes,
        key: (&'static str, &'static str),
        headers: &[(&'static str, &'static str)],
        silence: &mut Silence<'_>,
    ) -> Result<Events, Failure> {
        let request = self
            .request(Method::POST, key, headers)?
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
        let text = events.text(LONGEST_ERROR).await;
        Err(if status.is_success() {
            let fault = fault::no_events(self, &text);
            // Whoever answers with a page does so again, and may have made a whole answer for it.
            let should_retry = (fault.kind == FaultKind::Protocol).then_some(false);
            Failure {
                fault,
                should_retry,
            }
        } else {
            fault::of_status(self, status.as_u16(), &headers, &text)
        })
    }

    /// Send a request, and wait until the provider begins to answer.
    async fn send(
        &self,
        request: RequestBuilder,
        silence: &mut Silence<'_>,
    ) -> Result<Events, Failure> {
        match silence.during(request.send()).await {
            Ok(Ok(response)) => {
                silence.hear();
                let provider = self.provider.clone();
                Ok(Events { provider, response })
            }
            Ok(Err(error)) => Err(Failure {
                fault: fault::network(self, &error),
                should_retry: self.is_turned_away(&error).then_some(false),
            }),
            Err(which) => Err(too_silent(self, silence, which).into()),
        }
    }
}

/// An answer that streams. Dropping it closes its connection at once.
pub(crate) struct Events {
    /// The provider's name.
    provider: String,
    response: Response,
}

impl Source for Events {
    async fn next(&mut self) -> Result<Option<bytes::Bytes>, ModelFault> {
        let chunk = self.response.chunk().await;
        chunk.map_err(|error| fault::broken_off(&self.provider, &error))
    }
}

impl Events {
    /// All has been said: read what little is left beside the caller, so that the next call finds
    /// the connection open.
    pub(crate) fn finish(self) {
        let mut response = self.response;
        tokio::spawn(timeout(DRAIN, async move {
            while let Ok(Some(_)) = response.chunk().await {}
        }));
    }

    /// What is left of it, up to so many bytes and so much time: an error need not have an end.
    async fn text(&mut self, most: usize) -> String {
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
        // What came by then is told.
        let _ = timeout(LONGEST_TEXT, read).await;
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
