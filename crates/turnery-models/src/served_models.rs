//! Lists the models that a server currently serves.

use crate::{ProviderConfig, check_key};
use reqwest::Url;
use std::time::Duration;
use tokio::{net::TcpStream, time::timeout};

/// Returns the models that the server of `provider` lists. `None` if it does not respond within `wait`, or not
/// with a list of models.
pub async fn served_models(provider: &ProviderConfig, wait: Duration) -> Option<Vec<String>> {
    let asked = async {
        // Most machines run no model server; a plain TCP connect detects that without an HTTP client.
        if let Some((host, port)) = loopback_address(&provider.base_url) {
            TcpStream::connect((host.as_str(), port)).await.ok()?;
        }
        check_key(provider).await.ok()
    };
    timeout(wait, asked).await.ok().flatten()
}

/// Returns host and port if the URL is on this machine.
fn loopback_address(base_url: &str) -> Option<(String, u16)> {
    let url = Url::parse(base_url).ok()?;
    let host = url.host_str()?.trim_matches(['[', ']']);
    let is_here = match host.parse::<std::net::IpAddr>() {
        Ok(ip) => ip.is_loopback(),
        Err(_) => host == "localhost",
    };
    is_here
        .then(|| Some((host.to_owned(), url.port_or_known_default()?)))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_local() {
        let here = |url: &str| loopback_address(url);
        let at = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(here("http://127.0.0.1:11434/v1"), at("127.0.0.1", 11434));
        assert_eq!(here("http://localhost:8080/v1"), at("localhost", 8080));
        assert_eq!(here("http://[::1]:8000/v1"), at("::1", 8000));
        assert_eq!(here("https://localhost"), at("localhost", 443));
        assert_eq!(here("http://192.168.0.7:8000/v1"), None);
        assert_eq!(here("https://api.openai.com/v1"), None);
        assert_eq!(here("nonsense"), None);
    }
}
