//! Serves a local form for one key of one provider, to which an editor sends the user.
//!
//! Only requests that know the page's path and come from the same operating-system user are answered (ELIC-8); all
//! others get `404`. The key arrives by POST over loopback, and is checked and stored as by `turnery login`.

mod connection_owner;
mod html;

use super::{MAX_ATTEMPTS, parse_key, provider_choice::is_unencrypted, save_key};
use crate::config::{LiveProviders, key_file::KeyFile};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{self, HeaderName, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use secrecy::SecretString;
use std::{
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Mutex,
    task::JoinSet,
    time::timeout,
};
use turnery_acp::KeyPage;
use turnery_models::{ProviderConfig, ProviderSource as _, check_key};

/// Time that a page waits for its key.
const PAGE_TIMEOUT: Duration = Duration::from_secs(600);
/// Timeout of a connection, including the check of the key.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of simultaneous connections. Browsers open some that they do not use.
const MAX_CONNECTIONS: usize = 16;
/// Largest request head. Unit: bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Largest request body: a key with each byte percent-encoded. Unit: bytes.
const MAX_BODY_BYTES: usize = 48 << 10;

/// Opens a page for the key of `provider`.
pub(crate) fn open(
    live_providers: &Arc<LiveProviders>,
    keys: &KeyFile,
    provider: &str,
) -> Result<KeyPage, String> {
    let all = live_providers.current();
    let found = all.iter().find(|it| it.name == provider);
    let provider = found
        .ok_or_else(|| format!("there is no provider {provider}"))?
        .clone();
    let (listener, at) =
        listen().map_err(|error| format!("cannot listen on 127.0.0.1: {error}"))?;
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| error.to_string())?;
    let page = KeyPageServer {
        address: at,
        path: format!("/{}", URL_SAFE_NO_PAD.encode(secret)),
        provider,
        live_providers: Arc::clone(live_providers),
        keys: keys.clone(),
        failed_attempts: Mutex::new(0),
        outcome: OnceLock::new(),
    };
    let url = format!("http://{at}{}", page.path);
    let given = async move {
        let served = timeout(PAGE_TIMEOUT, serve(listener, Arc::new(page)));
        served.await.unwrap_or(false)
    };
    Ok(KeyPage {
        url,
        key_stored: Box::pin(given),
    })
}

fn listen() -> io::Result<(TcpListener, SocketAddr)> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let at = listener.local_addr()?;
    Ok((TcpListener::from_std(listener)?, at))
}

/// Serves until a key is stored or the attempts are used up. Returns true if a key was stored. Open connections are
/// closed at the end.
async fn serve(listener: TcpListener, page: Arc<KeyPageServer>) -> bool {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {
                // The response with the outcome has been sent.
                if let Some(is_kept) = page.outcome.get() {
                    return *is_kept;
                }
            }
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, from)) => {
                    connections.spawn(serve_connection(stream, from, Arc::clone(&page)));
                }
                Err(error) => {
                    tracing::warn!("the page for a key is closed: {error}");
                    return false;
                }
            },
        }
    }
}

async fn serve_connection(stream: TcpStream, from: SocketAddr, page: Arc<KeyPageServer>) {
    let service = service_fn(|request| {
        let page = Arc::clone(&page);
        async move { Ok::<_, Infallible>(page.respond(from, request).await) }
    });
    let served = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let _ = timeout(CONNECTION_TIMEOUT, served).await;
}

struct KeyPageServer {
    address: SocketAddr,
    /// Secret path, known only to the client.
    path: String,
    provider: ProviderConfig,
    live_providers: Arc<LiveProviders>,
    keys: KeyFile,
    /// Number of rejected keys. Held while a key is checked.
    failed_attempts: Mutex<u32>,
    /// True if a key was stored, false if the attempts are used up; the page answers no requests once set.
    outcome: OnceLock<bool>,
}

impl KeyPageServer {
    async fn respond(&self, from: SocketAddr, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if !self.is_addressed_here(from, &request) {
            return not_found();
        }
        match *request.method() {
            Method::GET => self.form_response(None),
            Method::POST if self.is_from_own_form(&request) => {
                self.handle_post(request.into_body()).await
            }
            _ => not_found(),
        }
    }

    /// Returns true if the request comes from the same user and names this page by its own address; a foreign
    /// host name that resolves to it (DNS rebinding) does not count.
    fn is_addressed_here<B>(&self, from: SocketAddr, request: &Request<B>) -> bool {
        let target = request.uri().path_and_query();
        self.outcome.get().is_none()
            && target.is_some_and(|it| it.as_str() == self.path)
            && has_header(request, header::HOST, &self.address.to_string())
            && connection_owner::is_own_connection(from, self.address)
    }

    /// Returns true if the request submits this page's own form, not that of another page.
    fn is_from_own_form<B>(&self, request: &Request<B>) -> bool {
        has_header(request, header::ORIGIN, &format!("http://{}", self.address))
            && has_header(
                request,
                header::CONTENT_TYPE,
                "application/x-www-form-urlencoded",
            )
    }

    async fn handle_post(&self, body: Incoming) -> Response<Full<Bytes>> {
        let Ok(body) = Limited::new(body, MAX_BODY_BYTES).collect().await else {
            return self.form_response(Some("This is too long for a key."));
        };
        let body = body.to_bytes();
        let mut fields = form_urlencoded::parse(&body);
        let typed = fields.find(|(name, _)| name == "key");
        let typed = SecretString::from(typed.map_or_else(String::new, |it| it.1.into_owned()));
        let mut failed_attempts = self.failed_attempts.lock().await;
        if self.outcome.get().is_some() {
            return not_found();
        }
        let name = &self.provider.name;
        match self.accept_key(&typed).await {
            Ok(()) => {
                let _ = self.outcome.set(true);
                html_response(&html::render_message(&format!(
                    "The key for {name} is kept. Close this page; turnery goes on."
                )))
            }
            Err(why) => {
                *failed_attempts += 1;
                if *failed_attempts < MAX_ATTEMPTS {
                    return self.form_response(Some(&why));
                }
                let _ = self.outcome.set(false);
                html_response(&html::render_message(&format!(
                    "{why} Nothing was kept, and this page is closed now."
                )))
            }
        }
    }

    /// Checks and stores a key.
    async fn accept_key(&self, typed: &SecretString) -> Result<(), String> {
        let key = parse_key(&self.provider.name, false, typed).map_err(|why| format!("{why}."))?;
        let provider = ProviderConfig {
            key,
            ..self.provider.clone()
        };
        let models = check_key(&provider).await.map_err(|fault| fault.message)?;
        save_key(&self.live_providers, &self.keys, provider, models)
            .map_err(|error| format!("{error}."))
    }

    fn form_response(&self, why: Option<&str>) -> Response<Full<Bytes>> {
        let address = &self.provider.base_url;
        html_response(&html::render_form(&html::KeyForm {
            provider: &self.provider.name,
            address,
            is_unencrypted: is_unencrypted(address),
            file: &self.keys.path().display().to_string(),
            error: why,
        }))
    }
}

/// Returns true if the request has the header exactly once, with this value.
fn has_header<B>(request: &Request<B>, name: HeaderName, value: &str) -> bool {
    let mut all = request.headers().get_all(name).iter();
    all.next().is_some_and(|it| it == value) && all.next().is_none()
}

/// Returns an empty 404 response, the same for every request that is not from the page's user or not for the page.
fn not_found() -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = StatusCode::NOT_FOUND;
    answer
}

fn html_response(text: &str) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::from(text.to_owned()));
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
        // With `no-referrer`, browsers would send no Origin to check.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        let headers = answer.headers_mut();
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

#[cfg(test)]
mod tests;
