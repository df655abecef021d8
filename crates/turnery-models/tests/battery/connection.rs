//! Tests how servers are reached.

use crate::{
    format::{End, Format, Item::Text},
    provider,
    server::{
        Reply, call_for_deltas, event_response, hello_request, serve, serve_replies, text_delta,
    },
};
use std::time::Duration;
use turnery_engine::ModelErrorKind;
use turnery_models::{ModelEvent, ModelEventSender, ModelRegistry, ProviderConfig};

/// Headers of the configuration are sent, and one of them replaces that for the key; a base URL may have a path.
// proves: ANTHROPIC-87, CHAT-87, RESPONSES-87, GEMINI-87
// proves: ANTHROPIC-88, CHAT-88, RESPONSES-88, GEMINI-88
#[tokio::test]
async fn own_address_and_headers_are_used() {
    for format in Format::ALL {
        let server = serve(vec![event_response(&format.text("Hi")); 2]).await;
        let key_header = match format {
            Format::Anthropic => "x-api-key",
            Format::Chat | Format::Responses => "authorization",
            Format::Gemini => "x-goog-api-key",
        };
        let base_url = format!("{}/gateway/team{}", server.base_url, format.base_path());
        let plain = ProviderConfig {
            base_url,
            ..provider(format, &server)
        };
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned().into());
        let own = ProviderConfig {
            headers: vec![header("X-Team", "blue"), header(key_header, "Basic s3cret")],
            ..plain.clone()
        };
        for (at, (provider, has_key)) in [(plain, true), (own, false)].into_iter().enumerate() {
            let name = format!("acme/{}", format.model()).parse().unwrap();
            let model = ModelRegistry::new(vec![provider]).model(&name).unwrap();
            call_for_deltas(&*model, hello_request()).await.0.unwrap();
            let head = server.requests.lock().unwrap()[at].0.clone();
            let path = format!("/gateway/team{}{}", format.base_path(), format.call_path());
            assert!(head.starts_with(&format!("POST {path} HTTP/1.1")), "{head}");
            let head = head.to_ascii_lowercase();
            assert_eq!(head.contains("sk-test"), has_key, "{format:?}: {head}");
            assert_eq!(head.contains("x-team: blue"), !has_key, "{format:?}");
            let own_key = format!("{key_header}: basic s3cret");
            assert_eq!(head.contains(&own_key), !has_key, "{format:?}: {head}");
        }
    }
}

/// A server is given up if it sends nothing: before the first byte, and after some output.
// proves: ANTHROPIC-91, CHAT-91, RESPONSES-91, GEMINI-91
#[tokio::test]
async fn silent_server_is_given_up() {
    let idle = Duration::from_secs(300);
    for format in Format::ALL {
        let whole = format.stream(&[Text(&["Hi", "<END>"])], End::Stop);
        let begun = &whole[..whole.find("<END>").unwrap()];
        let begun = &begun[..begun.rfind("data: ").unwrap()];
        for writes in [Vec::new(), vec![event_response(begun)]] {
            let has_output = !writes.is_empty();
            let reply = Reply {
                writes,
                is_held: true,
            };
            let server = serve_replies(vec![reply]).await;
            let model = server.model_with_idle_limit(format.api(), format.model(), 0, idle);
            let (sender, mut receiver) = ModelEventSender::new(8);
            let call = tokio::spawn(async move { model.call(hello_request(), sender).await });
            while server.requests.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            if has_output {
                let hi = ModelEvent::Delta(text_delta(0, "Hi"));
                assert_eq!(receiver.recv().await, Some(hi), "{format:?}");
            }
            tokio::time::pause();
            tokio::time::advance(idle).await;
            let error = call.await.unwrap().unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Timeout, "{format:?}");
            let says = error.message.contains("sent nothing for 300 seconds");
            assert!(says, "{format:?}: {error}");
            tokio::time::resume();
            server.closed.notified().await;
        }
    }
}
