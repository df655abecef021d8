//! Tests of a key page that nobody visits.

use super::*;
use turnery_models::Api;

fn open_page() -> KeyPage {
    let provider = ProviderConfig {
        key_hint: "DESK_KEY".to_owned(),
        ..ProviderConfig::new("desk", Api::OpenAi, "http://127.0.0.1:9/v1")
    };
    let keys = KeyFile::new("/nonexistent/keys.json".into());
    let live_providers = Arc::new(LiveProviders::new(vec![provider], None));
    assert!(open(&live_providers, &keys, "other").is_err());
    open(&live_providers, &keys, "desk").unwrap()
}

/// The path has 256 random bits and never repeats.
// proves: ELIC-7, ELIC-8
#[tokio::test]
async fn page_addresses_are_unique_and_reveal_nothing() {
    let (one, other) = (open_page(), open_page());
    let path = |page: &KeyPage| {
        let rest = page.url.strip_prefix("http://127.0.0.1:").unwrap();
        rest.split_once('/').unwrap().1.to_owned()
    };
    assert_eq!(path(&one).len(), 43, "{}", one.url);
    assert_ne!(path(&one), path(&other));
    assert!(!one.url.contains("desk"));
    assert!(!format!("{one:?}").contains(&path(&one)));
}

#[tokio::test(start_paused = true)]
async fn unused_page_is_closed_after_timeout() {
    let page = open_page();
    let at: SocketAddr = page.url["http://".len()..]
        .split('/')
        .next()
        .and_then(|it| it.parse().ok())
        .unwrap();
    let begun = tokio::time::Instant::now();
    assert!(!page.key_stored.await);
    assert_eq!(begun.elapsed(), Duration::from_secs(600));
    assert!(std::net::TcpStream::connect(at).is_err());
}
