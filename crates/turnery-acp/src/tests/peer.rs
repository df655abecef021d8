//! Questions to the client, and all that may come back (RPC-15 to RPC-17, CANCEL-7).

use super::parts::FakeClient;
use crate::{envelope::RequestId, peer::PeerError};
use serde_json::{Value, json, value::RawValue};
use std::sync::Arc;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

// proves: RPC-17
#[tokio::test]
async fn an_answer_finds_its_question_whatever_comes_before_it() {
    let mut client = FakeClient::new();
    let peer = Arc::clone(&client.peer);
    let first = tokio::spawn({
        let peer = Arc::clone(&peer);
        async move { peer.request::<_, Value>("a", &json!({})).await }
    });
    let asked = client.expect("a").await;
    let second = tokio::spawn(async move { peer.request::<_, Value>("b", &json!({})).await });
    let asked_too = client.expect("b").await;
    assert_ne!(asked["id"], asked_too["id"]);
    // Unknown ids, ids of another type, no id: nothing happens.
    let junk = raw("{}");
    for id in [
        RequestId::Number(999),
        RequestId::Text("1".to_owned()),
        RequestId::Null,
    ] {
        client.peer.answered(&id, Ok(&junk));
    }
    client.answer(&asked_too, json!("two"));
    client.answer(&asked, json!("one"));
    // Again: too late.
    client.answer(&asked, json!("three"));
    assert_eq!(first.await.unwrap(), Ok(json!("one")));
    assert_eq!(second.await.unwrap(), Ok(json!("two")));
}

// proves: RPC-15
#[tokio::test]
async fn errors_of_any_code_are_failures() {
    let mut client = FakeClient::new();
    for code in [12345, -32601, -32002, -32800] {
        let peer = Arc::clone(&client.peer);
        let asking = tokio::spawn(async move { peer.command("a", &json!({})).await });
        let asked = client.expect("a").await;
        client.refuse(&asked, code);
        let expected = PeerError::Refused {
            code,
            message: "no".to_owned(),
        };
        assert_eq!(asking.await.unwrap(), Err(expected));
    }
}

#[tokio::test]
async fn details_of_a_client_error_are_kept() {
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
        let asking = tokio::spawn(async move { peer.command("a", &json!({})).await });
        let asked = client.expect("a").await;
        let id = RequestId::Number(asked["id"].as_i64().unwrap());
        client.peer.answered(&id, Err(&raw(&body.to_string())));
        let expected = PeerError::Refused {
            code: -32603,
            message,
        };
        assert_eq!(asking.await.unwrap(), Err(expected));
    }
}

// proves: CANCEL-7
#[tokio::test]
async fn a_dropped_question_is_taken_back_once() {
    let mut client = FakeClient::new();
    let peer = Arc::clone(&client.peer);
    let asking = tokio::spawn(async move { peer.command("a", &json!({})).await });
    let asked = client.expect("a").await;
    asking.abort();
    let back = client.expect("$/cancel_request").await;
    assert_eq!(back["params"], json!({"requestId": asked["id"]}));
    assert!(back.get("id").is_none());
    // The answer comes all the same: nothing happens, and nothing more is sent.
    client.answer(&asked, json!({}));
    assert!(client.lines.try_recv().is_err());
}

#[tokio::test]
async fn a_question_without_answer_ends_with_the_connection() {
    let mut client = FakeClient::new();
    let peer = Arc::clone(&client.peer);
    let asking = tokio::spawn(async move { peer.command("a", &json!({})).await });
    client.expect("a").await;
    client.peer.close();
    assert_eq!(asking.await.unwrap(), Err(PeerError::Gone));
    assert_eq!(
        client.peer.command("b", &json!({})).await,
        Err(PeerError::Gone)
    );
    assert!(client.lines.try_recv().is_err());
}
