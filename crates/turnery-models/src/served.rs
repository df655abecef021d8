//! Which models a server has now, asked of the server.

use crate::{ProviderConfig, check_key};
use reqwest::Url;
use std::time::Duration;
use tokio::{net::TcpStream, time::timeout};

/// The models that the server of `provider` lists. `None` if it does not answer within `wait`, or not as such a
/// server does.
pub async fn served_models(provider: &ProviderConfig, wait: Duration) -> Option<Vec<String>> {
    let asked = async {
        // Most machines run no server. This finds it out without a client for HTTP.
        if let Some((host, port)) = loopback(&provider.base_url) {
            TcpStream::connect((host.as_str(), port)).await.ok()?;
        }
        check_key(provider).await.ok()
    };
    timeout(wait, asked).await.ok().flatten()
}

/// Host and port of an address on this machine.
fn loopback(base_url: &str) -> Option<(String, u16)> {
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
        let here = |url: &str| loopback(url);
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
