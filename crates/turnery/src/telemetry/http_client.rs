//! Sends OTLP requests to the collector, on the exporters' own threads.

use super::{delivery::Delivery, settings::TelemetrySettings};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use reqwest::{Certificate, Client, Url, redirect::Policy};
use std::{error::Error, fs, sync::Arc};
use tokio::runtime::Runtime;
use turnery_models::is_loopback;

/// Client for requests to the collector. Blocks the calling thread, which must not belong to an async runtime.
#[derive(Debug)]
pub(super) struct CollectorClient {
    client: Client,
    runtime: Runtime,
    delivery: Arc<Delivery>,
}

impl CollectorClient {
    pub(super) fn new(
        settings: &TelemetrySettings,
        delivery: Arc<Delivery>,
    ) -> Result<Self, String> {
        let runtime = crate::runtime::current_thread_runtime();
        // An error means that a provider is already installed, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder()
            .user_agent(concat!("turnery/", env!("CARGO_PKG_VERSION")))
            .timeout(settings.timeout)
            .redirect(Policy::none());
        let mut endpoints = settings.endpoints.iter();
        // The system's certificates take time to load.
        let builder = match endpoints.clone().any(|it| it.starts_with("https")) {
            true => builder.tls_certs_merge(read_certificates(settings)?),
            false => builder.tls_certs_only([]),
        };
        // A proxy cannot reach this machine.
        let builder = match endpoints.all(|it| is_loopback(it)) {
            true => builder.no_proxy(),
            false => builder,
        };
        let client = builder.build().map_err(|error| describe(&error))?;
        Ok(Self {
            client,
            runtime: runtime.map_err(|error| error.to_string())?,
            delivery,
        })
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = reqwest::Request::try_from(request)?;
        let url = display_url(request.url());
        match self.client.execute(request).await {
            Ok(response) => {
                let status = response.status();
                if !status.is_success() {
                    let reason = format!("the collector at {url} answers {status}");
                    self.delivery.set_last_failure(reason);
                }
                let mut answer = Response::new(Bytes::new());
                *answer.status_mut() = status;
                *answer.headers_mut() = response.headers().clone();
                Ok(answer)
            }
            Err(error) => {
                let reason = describe(&error.without_url());
                let reason = format!("the collector at {url} cannot be reached: {reason}");
                self.delivery.set_last_failure(reason.clone());
                Err(reason.into())
            }
        }
    }
}

impl HttpClient for CollectorClient {
    fn send_bytes<'a, 'f>(
        &'a self,
        request: Request<Bytes>,
    ) -> BoxFuture<'f, Result<Response<Bytes>, HttpError>>
    where
        'a: 'f,
        Self: 'f,
    {
        let sent = self.runtime.block_on(self.send(request));
        let is_failed = |sent: &Result<Response<Bytes>, HttpError>| {
            sent.as_ref().map_or(true, |it| !it.status().is_success())
        };
        Box::pin(std::future::ready(
            match self.delivery.is_closing() && is_failed(&sent) {
                // A status that is not tried again, so that the end of the process need not wait.
                true => {
                    let mut refused = Response::new(Bytes::new());
                    *refused.status_mut() = reqwest::StatusCode::BAD_REQUEST;
                    Ok(refused)
                }
                false => sent,
            },
        ))
    }
}

fn read_certificates(settings: &TelemetrySettings) -> Result<Vec<Certificate>, String> {
    let Some(path) = &settings.ca_file else {
        return Ok(Vec::new());
    };
    let problem = |why: String| {
        let path = path.display();
        format!("OTEL_EXPORTER_OTLP_CERTIFICATE names {path}, which cannot be used: {why}")
    };
    let pem = fs::read(path).map_err(|error| problem(error.to_string()))?;
    Certificate::from_pem_bundle(&pem).map_err(|error| problem(describe(&error)))
}

/// Returns scheme, host and port: the rest of an address may hold a key.
fn display_url(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}"));
    format!("{}://{host}{}", url.scheme(), port.unwrap_or_default())
}

/// Returns the innermost cause of an error, which says what happened.
fn describe(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
