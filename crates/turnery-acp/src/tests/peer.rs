//! Tests requests to the client and all possible responses (RPC-15 to RPC-17, CANCEL-7).

use super::support::FakeClient;
use crate::client::peer::PeerError;
use agent_client_protocol_schema::v1::RequestId;
use serde_json::{Value, json, value::RawValue};
use std::sync::Arc;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

// proves: RPC-17
#[tokio::test]
async fn responses_match_requests_by_id() {
    let mut client = FakeClient::new();
    let peer = Arc::clone(&client.peer);
    let first = tokio::spawn({
        let peer = Arc::clone(&peer);
        async move { peer.request::<_, Value>("a", &json!({})).await }
    });
    let asked = client.expect_method("a").await;
    let second = tokio::spawn(async move { peer.request::<_, Value>("b", &json!({})).await });
    let asked_too = client.expect_method("b").await;
    assert_ne!(asked["id"], asked_too["id"]);
    // Unknown ids, ids of another type, no id: ignored.
    let junk = raw("{}");
    for id in [
        RequestId::Number(999),
        RequestId::Str("1".to_owned()),
        RequestId::Null,
    ] {
        client.peer.handle_response(&id, Ok(&junk));
    }
    client.respond(&asked_too, json!("two"));
    client.respond(&asked, json!("one"));
    // A second response is ignored.
    client.respond(&asked, json!("three"));
    assert_eq!(first.await.unwrap(), Ok(json!("one")));
    assert_eq!(second.await.unwrap(), Ok(json!("two")));
}

// proves: RPC-15
#[tokio::test]
async fn any_error_code_fails_the_request() {
    let mut client = FakeClient::new();
    for code in [12345, -32601, -32002, -32800] {
        let peer = Arc::clone(&client.peer);
        let asking = tokio::spawn(async move { peer.request_unit("a", &json!({})).await });
        let asked = client.expect_method("a").await;
        client.respond_error(&asked, code);
        let expected = PeerError::ErrorResponse {
            code,
            message: "no".to_owned(),
        };
        assert_eq!(asking.await.unwrap(), Err(expected));
    }
}

#[tokio::test]
async fn client_error_details_join_message() {
    let mut client = FakeClient::new();
    let long = "x".repeat(5000);
    let bodies = [
        (
            json!({"code": -32603, "message": "Internal error", "data": {"details": "a.rs: no space"}}),
            "Internal error: a.rs: no space".to_owned(),
        ),
        (
            json!({"code": -32603, "message": "a.rs: no space", "data": {"details": "no space"}}),
            "a.rs: no space".to_owned(),
        ),
        (
            json!({"code": -32603, "message": "no", "data": "text"}),
            "no".to_owned(),
        ),
        (
            json!({"code": -32603, "message": "no", "data": {"details": long}}),
            format!("no: {}\u{2026}", "x".repeat(600)),
        ),
    ];
    for (body, message) in bodies {
        let peer = Arc::clone(&client.peer);
        let asking = tokio::spawn(async move { peer.request_unit("a", &json!({})).await });
        let asked = client.expect_method("a").await;
        let id = RequestId::Number(asked["id"].as_i64().unwrap());
        client
            .peer
            .handle_response(&id, Err(&raw(&body.to_string())));
        let expected = PeerError::ErrorResponse {
            code: -32603,
            message,
        };
        assert_eq!(asking.await.unwrap(), Err(expected));
    }
}

// proves: CANCEL-7
#[tokio::test]
async fn dropped_request_is_cancelled_once() {
    let mut client = FakeClient::new();
    let peer = Arc::clone(&client.peer);
    let asking = tokio::spawn(async move { peer.request_unit("a", &json!({})).await });
    let asked = client.expect_method("a").await;
    asking.abort();
    let back = client.expect_method("$/cancel_request").await;
    assert_eq!(back["params"], json!({"requestId": asked["id"]}));
    assert!(back.get("id").is_none());
    // A late response is ignored, and nothing more is sent.
    client.respond(&asked, json!({}));
    assert!(client.lines.try_recv().is_err());
}

#[tokio::test]
async fn pending_request_fails_when_connection_ends() {
    let mut client = FakeClient::new();
    let peer = Arc::clone(&client.peer);
    let asking = tokio::spawn(async move { peer.request_unit("a", &json!({})).await });
    client.expect_method("a").await;
    client.peer.close();
    assert_eq!(asking.await.unwrap(), Err(PeerError::Disconnected));
    assert_eq!(
        client.peer.request_unit("b", &json!({})).await,
        Err(PeerError::Disconnected)
    );
    assert!(client.lines.try_recv().is_err());
}
