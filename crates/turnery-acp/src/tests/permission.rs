//! Tests permission requests and the interpretation of their responses (PERM-1 to PERM-5).

use super::support::FakeClient;
use crate::{v1::permission::PermissionClientV1, v2::permission::PermissionClientV2};
use agent_client_protocol_schema::v1::RequestPermissionRequest;
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_agent::{
    Client, PermissionAnswer, PermissionChoice, PermissionChoiceKind, PermissionRequest,
};
use turnery_engine::{Artifact, CallDetail, CallId, CallKind, Content, Location, SessionId};

fn sample_request() -> PermissionRequest {
    let option = |id: &str, kind| PermissionChoice {
        id: id.to_owned(),
        name: id.to_uppercase(),
        kind,
    };
    PermissionRequest {
        session_id: SessionId::from("s1"),
        call_id: CallId::from("c1"),
        tool_name: "edit_file".to_owned(),
        args: Arc::new(json!({"path": "a.rs"})),
        detail: CallDetail {
            title: "Edit a.rs".to_owned(),
            kind: CallKind::Edit,
            locations: vec![Location {
                path: "/w/a.rs".into(),
                line: Some(3),
            }],
            artifacts: vec![
                Artifact::Content(Content::text("note")),
                Artifact::Diff {
                    path: "/w/a.rs".into(),
                    old: Some("a\n".to_owned()),
                    new: "b\n".to_owned(),
                    from_line: None,
                },
            ],
        },
        rule: None,
        options: vec![
            option("yes", PermissionChoiceKind::AllowOnce),
            option("always", PermissionChoiceKind::AllowAlways),
            option("no", PermissionChoiceKind::RejectOnce),
            option("never", PermissionChoiceKind::RejectAlways),
        ],
    }
}

async fn answer_for(reply: impl FnOnce(&FakeClient, &Value)) -> (Value, PermissionAnswer) {
    let mut client = FakeClient::new();
    let person = PermissionClientV1 {
        peer: Arc::clone(&client.peer),
        forms: false,
        key_page_opener: None,
    };
    let asking = tokio::spawn(async move { person.request_permission(sample_request()).await });
    let asked = client.expect_method("session/request_permission").await;
    reply(&client, &asked);
    (asked, asking.await.unwrap())
}

#[tokio::test]
async fn hidden_characters_in_request_are_visible() {
    let mut client = FakeClient::new();
    let person = PermissionClientV1 {
        peer: Arc::clone(&client.peer),
        forms: false,
        key_page_opener: None,
    };
    let mut question = sample_request();
    question.detail.title = "rm \u{202e}x".to_owned();
    question.options[1].name = "Always allow shell(rm \u{200b}x)".to_owned();
    let _asking = tokio::spawn(async move { person.request_permission(question).await });
    let asked = client.expect_method("session/request_permission").await;
    assert_eq!(asked["params"]["toolCall"]["title"], "rm ⟨U+202E⟩x");
    let name = &asked["params"]["options"][1]["name"];
    assert_eq!(name, "Always allow shell(rm ⟨U+200B⟩x)");
}

#[tokio::test]
async fn hidden_characters_in_v2_request_are_visible() {
    let mut client = FakeClient::new();
    let person = PermissionClientV2(Arc::clone(&client.peer));
    let mut question = sample_request();
    question.detail.title = "rm \u{202e}x".to_owned();
    let _asking = tokio::spawn(async move { person.request_permission(question).await });
    let asked = client.expect_method("session/request_permission").await;
    let params = &asked["params"];
    assert_eq!(params["description"], "rm ⟨U+202E⟩x", "{params}");
    assert_eq!(
        params["subject"]["toolCall"]["title"], "rm ⟨U+202E⟩x",
        "{params}"
    );
}

// proves: ACP-31, UP-38, PERM-2, TOOL-8
#[tokio::test]
async fn permission_request_shows_diff_first() {
    let (asked, _) = answer_for(|client, asked| client.respond_error(asked, -1)).await;
    let params = &asked["params"];
    let typed: RequestPermissionRequest = serde_json::from_value(params.clone()).unwrap();
    assert_eq!(&serde_json::to_value(typed).unwrap(), params);
    let expected = json!({
        "sessionId": "s1",
        "toolCall": {
            "toolCallId": "c1",
            "kind": "edit",
            "status": "pending",
            "title": "Edit a.rs",
            "name": "edit_file",
            "content": [
                {"type": "diff", "path": "/w/a.rs", "oldText": "a\n", "newText": "b\n"},
                {"type": "content", "content": {"type": "text", "text": "note"}},
            ],
            "locations": [{"path": "/w/a.rs", "line": 3}],
            "rawInput": {"path": "a.rs"},
        },
        "options": [
            {"optionId": "yes", "name": "YES", "kind": "allow_once"},
            {"optionId": "always", "name": "ALWAYS", "kind": "allow_always"},
            {"optionId": "no", "name": "NO", "kind": "reject_once"},
            {"optionId": "never", "name": "NEVER", "kind": "reject_always"},
        ],
    });
    assert_eq!(params, &expected);
}

// proves: PERM-3, G-12
#[tokio::test]
async fn only_offered_option_is_accepted() {
    let chosen = [
        (
            json!({"outcome": {"outcome": "selected", "optionId": "yes"}}),
            "yes",
        ),
        (
            json!({"outcome": {"outcome": "selected", "optionId": "never"}, "_meta": 42}),
            "never",
        ),
    ];
    for (reply, id) in chosen {
        let (_, answer) = answer_for(|client, asked| client.respond(asked, reply)).await;
        assert_eq!(answer, PermissionAnswer::Selected(id.to_owned()));
    }
    let senseless = [
        json!({"outcome": {"outcome": "selected", "optionId": "other"}}),
        json!({"outcome": {"outcome": "selected"}}),
        json!({"outcome": {"outcome": "approved", "optionId": "yes"}}),
        json!({"outcome": "selected", "optionId": "yes"}),
        json!({"outcome": {}}),
        json!({}),
        json!(null),
        json!(true),
    ];
    for reply in senseless {
        let text = reply.to_string();
        let (_, answer) = answer_for(|client, asked| client.respond(asked, reply)).await;
        assert!(
            matches!(answer, PermissionAnswer::NoAnswer(_)),
            "{text}: {answer:?}"
        );
    }
}

// proves: ACP-50, PERM-3, PERM-4, RPC-15, CANCEL-6, G-12
#[tokio::test]
async fn cancelled_differs_from_no_answer() {
    let reply = json!({"outcome": {"outcome": "cancelled"}});
    let (_, answer) = answer_for(|client, asked| client.respond(asked, reply)).await;
    assert_eq!(answer, PermissionAnswer::Cancelled);
    // CANCEL-6: cancellation as an error response.
    let (_, answer) = answer_for(|client, asked| client.respond_error(asked, -32800)).await;
    assert_eq!(answer, PermissionAnswer::Cancelled);
    for code in [-32601, -32603, 12345] {
        let (_, answer) = answer_for(|client, asked| client.respond_error(asked, code)).await;
        assert!(
            matches!(answer, PermissionAnswer::NoAnswer(_)),
            "{code}: {answer:?}"
        );
    }
    let (_, answer) = answer_for(|client, _| client.peer.close()).await;
    assert!(matches!(answer, PermissionAnswer::NoAnswer(_)));
}
