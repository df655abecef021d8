//! Encrypts connections with rustls.

use super::address::PostgresAddress;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::{
    io,
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::{Connect, TlsConnector, client::TlsStream};

/// Makes encrypted connections. The server's certificate is always verified: against the certificates of the
/// address, else against those of the system.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    pub(super) fn new(address: &PostgresAddress) -> Result<Self, String> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = match &address.root_certificates {
            Some(path) => builder
                .with_root_certificates(read_certificates(path)?)
                .with_no_client_auth(),
            None => builder
                .with_platform_verifier()
                .map_err(|error| {
                    format!("the certificates of this system cannot be used: {error}")
                })?
                .with_no_client_auth(),
        };
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }
}

fn read_certificates(path: &Path) -> Result<RootCertStore, String> {
    let refused = |why: String| format!("sslrootcert={}: {why}", path.display());
    let mut roots = RootCertStore::empty();
    let certificates =
        CertificateDer::pem_file_iter(path).map_err(|error| refused(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| refused(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| refused(error.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(refused("it holds no certificate".to_owned())),
        false => Ok(roots),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = PostgresTlsStream<S>;
    type TlsConnect = ServerTls;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<ServerTls> {
        let server = ServerName::try_from(domain.to_owned()).map_err(io::Error::other)?;
        Ok(ServerTls {
            connector: self.0.clone(),
            server,
        })
    }
}

/// Makes encrypted connections to one server.
pub(super) struct ServerTls {
    connector: TlsConnector,
    server: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for ServerTls {
    type Stream = PostgresTlsStream<S>;
    type Error = io::Error;
    type Future = PostgresTlsConnect<S>;

    fn connect(self, stream: S) -> Self::Future {
        PostgresTlsConnect(Box::new(self.connector.connect(self.server, stream)))
    }
}

/// A connection that is being encrypted.
pub(super) struct PostgresTlsConnect<S>(Box<Connect<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> Future for PostgresTlsConnect<S> {
    type Output = io::Result<PostgresTlsStream<S>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut *self.0)
            .poll(cx)
            .map_ok(|stream| PostgresTlsStream(Box::new(stream)))
    }
}

/// An encrypted connection.
pub(super) struct PostgresTlsStream<S>(Box<TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> tokio_postgres::tls::TlsStream for PostgresTlsStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for PostgresTlsStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for PostgresTlsStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}
