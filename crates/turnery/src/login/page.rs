//! Page: a form on this machine, open for one key of one provider, to which an editor sends the person.
//!
//! Only who knows its path, and is the user that turnery runs as, is answered (ELIC-8); all others find
//! nothing there. The key comes by POST over loopback, and is checked and kept as `turnery login` does it.

mod html;
mod owner;

use super::{TRIES, choice::is_open, sound, store};
use crate::config::{Reach, keys::Keys};
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
use turnery_models::{ProviderConfig, Providers as _, check_key};

/// How long a page waits for its key.
const OPEN_FOR: Duration = Duration::from_secs(600);
/// How long one connection may take, with the check of the key in it.
const CONNECTION: Duration = Duration::from_secs(60);
/// Connections at once. Browsers open some that they do not use.
const CONNECTIONS: usize = 16;
/// The longest head of a request. Unit: bytes.
const LONGEST_HEAD: usize = 16 << 10;
/// The longest body: a key with each byte written as three. Unit: bytes.
const LONGEST_BODY: usize = 48 << 10;

/// Open a page for the key of this provider.
pub(crate) fn open(reach: &Arc<Reach>, keys: &Keys, provider: &str) -> Result<KeyPage, String> {
    let all = reach.now();
    let found = all.iter().find(|it| it.name == provider);
    let provider = found
        .ok_or_else(|| format!("there is no provider {provider}"))?
        .clone();
    let (listener, at) =
        listen().map_err(|error| format!("cannot listen on 127.0.0.1: {error}"))?;
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| error.to_string())?;
    let page = Page {
        at,
        path: format!("/{}", URL_SAFE_NO_PAD.encode(secret)),
        provider,
        reach: Arc::clone(reach),
        keys: keys.clone(),
        tries: Mutex::new(0),
        ended: OnceLock::new(),
    };
    let url = format!("http://{at}{}", page.path);
    let given = async move {
        let served = timeout(OPEN_FOR, serve(listener, Arc::new(page)));
        served.await.unwrap_or(false)
    };
    Ok(KeyPage {
        url,
        given: Box::pin(given),
    })
}

fn listen() -> io::Result<(TcpListener, SocketAddr)> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let at = listener.local_addr()?;
    Ok((TcpListener::from_std(listener)?, at))
}

/// Serve until a key is kept, or no more are taken. Its connections end with it.
async fn serve(listener: TcpListener, page: Arc<Page>) -> bool {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {
                // By now the person has been told.
                if let Some(is_kept) = page.ended.get() {
                    return *is_kept;
                }
            }
            accepted = listener.accept(), if connections.len() < CONNECTIONS => match accepted {
                Ok((stream, from)) => {
                    connections.spawn(connection(stream, from, Arc::clone(&page)));
                }
                Err(error) => {
                    tracing::warn!("the page for a key is closed: {error}");
                    return false;
                }
            },
        }
    }
}

async fn connection(stream: TcpStream, from: SocketAddr, page: Arc<Page>) {
    let service = service_fn(|request| {
        let page = Arc::clone(&page);
        async move { Ok::<_, Infallible>(page.answer(from, request).await) }
    });
    let served = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let _ = timeout(CONNECTION, served).await;
}

struct Page {
    at: SocketAddr,
    /// Known to the client that was told of it.
    path: String,
    provider: ProviderConfig,
    reach: Arc<Reach>,
    keys: Keys,
    /// Keys that were not taken. Held while one is checked.
    tries: Mutex<u32>,
    /// Whether a key was kept; once that is said, nothing is here any more.
    ended: OnceLock<bool>,
}

impl Page {
    async fn answer(&self, from: SocketAddr, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if !self.is_meant(from, &request) {
            return nothing();
        }
        match *request.method() {
            Method::GET => self.form(None),
            Method::POST if self.is_from_here(&request) => self.post(request.into_body()).await,
            _ => nothing(),
        }
    }

    /// Whether the request comes from the user, and is for this page by its own name: a name that
    /// somebody else's server has given to this address is not (DNS rebinding).
    fn is_meant<B>(&self, from: SocketAddr, request: &Request<B>) -> bool {
        let target = request.uri().path_and_query();
        self.ended.get().is_none()
            && target.is_some_and(|it| it.as_str() == self.path)
            && says(request, header::HOST, &self.at.to_string())
            && owner::is_ours(from, self.at)
    }

    /// Whether the form on this page was sent, and not one of another page's.
    fn is_from_here<B>(&self, request: &Request<B>) -> bool {
        says(request, header::ORIGIN, &format!("http://{}", self.at))
            && says(
                request,
                header::CONTENT_TYPE,
                "application/x-www-form-urlencoded",
            )
    }

    async fn post(&self, body: Incoming) -> Response<Full<Bytes>> {
        let Ok(body) = Limited::new(body, LONGEST_BODY).collect().await else {
            return self.form(Some("This is too long for a key."));
        };
        let body = body.to_bytes();
        let mut fields = form_urlencoded::parse(&body);
        let typed = fields.find(|(name, _)| name == "key");
        let typed = SecretString::from(typed.map_or_else(String::new, |it| it.1.into_owned()));
        let mut tries = self.tries.lock().await;
        if self.ended.get().is_some() {
            return nothing();
        }
        let name = &self.provider.name;
        match self.take(&typed).await {
            Ok(()) => {
                let _ = self.ended.set(true);
                page(&html::told(&format!(
                    "The key for {name} is kept. Close this page; turnery goes on."
                )))
            }
            Err(why) => {
                *tries += 1;
                if *tries < TRIES {
                    return self.form(Some(&why));
                }
                let _ = self.ended.set(false);
                page(&html::told(&format!(
                    "{why} Nothing was kept, and this page is closed now."
                )))
            }
        }
    }

    /// Check it, and keep it.
    async fn take(&self, typed: &SecretString) -> Result<(), String> {
        let key = sound(&self.provider.name, false, typed).map_err(|why| format!("{why}."))?;
        let provider = ProviderConfig {
            key,
            ..self.provider.clone()
        };
        let models = check_key(&provider).await.map_err(|fault| fault.message)?;
        store(&self.reach, &self.keys, provider, models).map_err(|error| format!("{error}."))
    }

    fn form(&self, why: Option<&str>) -> Response<Full<Bytes>> {
        let address = &self.provider.base_url;
        page(&html::form(&html::Form {
            provider: &self.provider.name,
            address,
            is_open: is_open(address),
            file: &self.keys.path().display().to_string(),
            why,
        }))
    }
}

/// Whether the request has this header just once, with this value.
fn says<B>(request: &Request<B>, name: HeaderName, value: &str) -> bool {
    let mut all = request.headers().get_all(name).iter();
    all.next().is_some_and(|it| it == value) && all.next().is_none()
}

/// The same for all that is not for the one person, and for what is no page at all.
fn nothing() -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = StatusCode::NOT_FOUND;
    answer
}

fn page(text: &str) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::from(text.to_owned()));
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
        // Not `no-referrer`: browsers then send no Origin that could be checked.
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
