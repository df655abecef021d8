//! Ollama, a local server.

use super::KnownProvider;

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "ollama",
    base_url: "http://127.0.0.1:11434/v1",
    url_variable: "OLLAMA_HOST",
    key_variable: "OLLAMA_API_KEY",
    read_url: ollama_url,
    needs_key: false,
    ..KnownProvider::DEFAULT
};

/// Returns the URL for `OLLAMA_HOST`, which is a host, a port, both, or a URL; `0.0.0.0` is a listen address.
fn ollama_url(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let port_at = authority
        .rfind(':')
        .filter(|at| authority[at + 1..].bytes().all(|b| b.is_ascii_digit()));
    let (name, port) = match port_at {
        Some(at) => (&authority[..at], &authority[at + 1..]),
        None => (authority, if scheme == "https" { "443" } else { "11434" }),
    };
    let name = match name {
        "" | "0.0.0.0" | "[::]" => "127.0.0.1",
        name => name,
    };
    let path = path
        .trim_end_matches('/')
        .trim_end_matches("v1")
        .trim_end_matches('/');
    let slash = if path.is_empty() { "" } else { "/" };
    format!("{scheme}://{name}:{port}{slash}{path}/v1")
}
