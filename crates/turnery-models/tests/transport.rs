//! Tests certificates and proxies with servers on loopback. Settings of the environment are tested in a process of their
//! own, because they are read once.

#[path = "battery/format.rs"]
#[expect(dead_code, reason = "only streams are needed")]
mod format;
mod server;

use format::Format;
use rustls::{
    ServerConfig, ServerConnection,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use server::{call_for_deltas, event_response, hello_request, serve};
use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};
use turnery_engine::{ModelError, ModelErrorKind, Response};
use turnery_models::{CallLimits, ModelName, ModelRegistry, ProviderConfig, RetryPolicy};

/// Variable with the URL that [`call_from_environment`] calls.
const URL_VARIABLE: &str = "TURNERY_TEST_URL";

/// Variable with the format of that call.
const FORMAT_VARIABLE: &str = "TURNERY_TEST_FORMAT";

/// Valid until 2126, for `localhost`; the authority is in no trust store.
fn certificate(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/certificates");
    folder.join(name)
}

/// Answers each HTTPS connection with a response; returns the URL and the number of connections.
fn serve_https(format: Format) -> (String, Arc<AtomicUsize>) {
    let chain = CertificateDer::pem_file_iter(certificate("localhost.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(certificate("localhost.key")).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain.collect::<Result<_, _>>().expect("certificates"), key)
        .expect("a pair");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    thread::spawn(move || {
        for socket in listener.incoming() {
            counter.fetch_add(1, Ordering::SeqCst);
            let mut socket = socket.expect("a connection");
            let mut tls = ServerConnection::new(Arc::clone(&config)).expect("a connection");
            let mut stream = rustls::Stream::new(&mut tls, &mut socket);
            // A client that does not trust the certificate hangs up.
            if stream.read(&mut [0; 65536]).is_ok() {
                let _ = stream.write_all(&event_response(&format.text("Hi")));
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        }
    });
    let url = format!("https://localhost:{port}{}", format.base_path());
    (url, connections)
}

async fn call(format: Format, url: &str, ca_file: Option<PathBuf>) -> Result<Response, ModelError> {
    let provider = ProviderConfig {
        ca_file,
        ..ProviderConfig::new("acme", format.api(), url)
    };
    let limits = CallLimits {
        retry: RetryPolicy {
            max_retries: 1,
            initial_wait: Duration::from_millis(1),
            ..RetryPolicy::default()
        },
        ..CallLimits::default()
    };
    let registry = ModelRegistry::new(vec![provider]).limits(limits);
    let model = registry
        .model(&ModelName::new("acme", format.model()))
        .expect("a model");
    call_for_deltas(&*model, hello_request()).await.0
}

// proves: ANTHROPIC-90, CHAT-90, RESPONSES-90, GEMINI-90
#[tokio::test]
async fn private_authority_is_trusted_only_if_configured() {
    for format in Format::ALL {
        let (url, connections) = serve_https(format);
        let response = call(format, &url, Some(certificate("authority.pem"))).await;
        assert_eq!(response.unwrap().text(), "Hi", "{format:?}");
        let error = call(format, &url, None).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Network, "{format:?}");
        for part in [
            "The certificate of acme",
            "UnknownIssuer",
            "set ca_file of the provider acme",
        ] {
            assert!(error.message.contains(part), "{part}: {}", error.message);
        }
        // Another attempt would see the same certificate.
        assert_eq!(connections.load(Ordering::SeqCst), 2, "{format:?}");
    }
}

/// Runs [`call_from_environment`] in a process of its own.
fn call_in_process(format: Format, url: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", "call_from_environment", "--nocapture"])
        .env(URL_VARIABLE, url)
        .env(FORMAT_VARIABLE, format!("{format:?}"));
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command
        .envs(variables.iter().copied())
        .output()
        .expect("it ran")
}

/// Part of the tests below: does nothing by itself.
#[tokio::test]
async fn call_from_environment() {
    if let Ok(url) = std::env::var(URL_VARIABLE) {
        let name = std::env::var(FORMAT_VARIABLE).expect("a format");
        let mut formats = Format::ALL.into_iter();
        let format = formats.find(|format| format!("{format:?}") == name);
        assert_eq!(
            call(format.expect("a known format"), &url, None)
                .await
                .unwrap()
                .text(),
            "Hi"
        );
    }
}

/// The variable has this meaning on Linux only; elsewhere the system's store decides.
#[cfg(target_os = "linux")]
#[test]
fn certificates_of_the_environment_are_trusted() {
    let authority = certificate("authority.pem");
    let variables = [("SSL_CERT_FILE", authority.to_str().unwrap())];
    for format in Format::ALL {
        let (url, _) = serve_https(format);
        let done = call_in_process(format, &url, &variables);
        assert!(done.status.success(), "{done:?}");
        assert!(!call_in_process(format, &url, &[]).status.success());
    }
}

/// Calls go through the proxy of the environment, except to this machine, which a proxy cannot reach.
// proves: ANTHROPIC-89, CHAT-89, RESPONSES-89, GEMINI-89
#[tokio::test]
async fn proxy_of_the_environment_is_used_except_locally() {
    for format in Format::ALL {
        let run = |url: String, variables: Vec<(&'static str, String)>| async move {
            let run = move || {
                let variables: Vec<_> = variables
                    .iter()
                    .map(|(name, it)| (*name, it.as_str()))
                    .collect();
                call_in_process(format, &url, &variables)
            };
            tokio::task::spawn_blocking(run).await.unwrap()
        };
        let proxy = serve(vec![event_response(&format.text("Hi"))]).await;
        let remote = format!("http://model.invalid{}", format.base_path());
        let variables = vec![("HTTP_PROXY", proxy.base_url.clone())];
        let done = run(remote.clone(), variables).await;
        assert!(done.status.success(), "{done:?}");
        let head = proxy.requests.lock().unwrap()[0].0.clone();
        let line = format!("POST {remote}{} HTTP/1.1", format.call_path());
        assert!(head.starts_with(&line), "{head}");

        let local = serve(vec![event_response(&format.text("Hi"))]).await;
        let nowhere = "http://127.0.0.1:9".to_owned();
        let url = format!("{}{}", local.base_url, format.base_path());
        let variables = vec![("HTTP_PROXY", nowhere.clone()), ("ALL_PROXY", nowhere)];
        let done = run(url, variables).await;
        assert!(done.status.success(), "{done:?}");
    }
}
