//! Tests the form of messages.

use super::*;
use turnery_engine::DocumentData;

/// Quirks 10 and 11.
// proves: CHAT-10, CHAT-11
#[test]
fn content_is_a_string_and_null_only_beside_calls() {
    let history = vec![
        user("one"),
        assistant("m1", &[], vec![call("c_1")]),
        result("c_1", "found"),
        assistant("m1", &[], vec![Content::text("A"), Content::text("B")]),
        user("two"),
        // Nothing is left of these.
        assistant("m1", &[], vec![thought("Hm")]),
        assistant("another", &[], vec![thought("Hm")]),
        user("three"),
    ];
    assert_eq!(
        messages(UNKNOWN, "m1", history),
        [
            json!({"role": "system", "content": "Be brief."}),
            json!({"role": "user", "content": "one"}),
            json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": "c_1", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}},
            ]}),
            json!({"role": "tool", "tool_call_id": "c_1", "content": "found"}),
            json!({"role": "assistant", "content": "A\n\nB"}),
            json!({"role": "user", "content": "two\n\nthree"}),
        ]
    );
}

/// Quirk 13.
// proves: CHAT-13
#[test]
fn there_is_one_system_message_at_the_start() {
    let notice = |text: &str| Message::System {
        text: text.to_owned(),
    };
    let history = vec![notice("A"), user("one"), notice("B"), notice("C")];
    let sent = messages(UNKNOWN, "m1", history);
    let roles: Vec<&Value> = sent.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user"]);
}

/// Quirks 6 and 14.
// proves: CHAT-6, CHAT-14
#[test]
fn pictures_of_results_follow_in_a_user_message() {
    let history = vec![
        user("one"),
        assistant("m1", &[], vec![call("D681PevKs")]),
        Message::ToolResult {
            call_id: "D681PevKs".into(),
            tool_name: "read".to_owned(),
            content: vec![picture()],
            is_error: false,
        },
    ];
    for (host, after_result) in [
        (UNKNOWN, &["user"][..]),
        (MISTRAL, &["assistant", "user"][..]),
    ] {
        let sent = messages(host, "m1", history.clone());
        let roles: Vec<&Value> = sent[4..].iter().map(|message| &message["role"]).collect();
        assert_eq!(roles, after_result, "{host}");
        let last = &sent[sent.len() - 1];
        assert_eq!(
            last["content"][1],
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}})
        );
    }
}

/// A document of a prompt is a part; one of a result follows in a message of the user.
// proves: CHAT-77
#[test]
fn document_is_sent_as_a_file() {
    let document = |name: &str| {
        Content::Document(DocumentData {
            name: name.to_owned(),
            mime_type: "application/pdf".to_owned(),
            base64: "JVBE".into(),
        })
    };
    let history = vec![
        Message::User {
            content: vec![document("a.pdf")],
        },
        assistant("gpt-5", &[], vec![call("c_1")]),
        Message::ToolResult {
            call_id: "c_1".into(),
            tool_name: "read".to_owned(),
            content: vec![document("b.pdf")],
            is_error: false,
        },
    ];
    let mut info = info("gpt-5");
    info.documents = true;
    let body = OpenAi::new(OPENAI, "gpt-5", false).test_body(&info, &request(history));
    let body: Value = serde_json::from_slice(&body).unwrap();
    let file = |name: &str| {
        json!({"type": "file", "file": {
            "filename": name, "file_data": "data:application/pdf;base64,JVBE"}})
    };
    assert_eq!(body["messages"][1]["content"], json!([file("a.pdf")]));
    assert_eq!(body["messages"][4]["content"][1], file("b.pdf"));
}

/// Quirk 63: a note stands in for a picture.
// proves: CHAT-63
#[test]
fn text_only_model_gets_no_picture() {
    let history = request(vec![Message::User {
        content: vec![Content::text("see"), picture()],
    }]);
    let blind = ModelInfo {
        images: false,
        ..info("m1")
    };
    let bytes = OpenAi::new(UNKNOWN, "m1", false).test_body(&blind, &history);
    let sent: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(
        sent["messages"][1]["content"],
        "see\n\n[image (image/png) omitted: this model does not accept images]"
    );
}

/// Quirks 1, 3 and 5: the same new id for a call and its result, in every request.
// proves: CHAT-1, CHAT-2, CHAT-3
#[test]
fn call_ids_take_the_form_of_the_host() {
    let long = "call:".repeat(14);
    let history = |more: bool| {
        let mut history = vec![
            user("one"),
            assistant("m1", &[], vec![call(&long), call("call_1")]),
            result(&long, "a"),
            result("call_1", "b"),
        ];
        if more {
            history.extend([assistant("m1", &[], vec![call("x_3")]), result("x_3", "c")]);
        }
        history
    };
    let ids = |host: &str, model: &str, more: bool| {
        let sent = messages(host, model, history(more));
        let calls = [0, 1].map(|at| sent[2]["tool_calls"][at]["id"].clone());
        let results = [3, 4].map(|at: usize| sent[at]["tool_call_id"].clone());
        assert_eq!(calls, results, "{host}");
        calls.map(|id| id.as_str().unwrap().to_owned())
    };
    for (host, model, longest) in [
        (OPENAI, "gpt-5", 40),
        (AZURE, "my-deployment", 40),
        (OPENROUTER, "openai/gpt-5.1", 40),
        (MISTRAL, "devstral-medium-latest", 9),
        (OPENROUTER, "anthropic/claude-sonnet-4.5", 64),
    ] {
        let first = ids(host, model, false);
        assert_eq!(first, ids(host, model, true), "{host}");
        assert!(first.iter().all(|id| id.len() <= longest), "{first:?}");
        assert_ne!(first[0], first[1]);
    }
    // Proxies keep state in long ids.
    for (host, model) in [(UNKNOWN, "m1"), (OPENROUTER, "google/gemini-3-pro")] {
        assert_eq!(ids(host, model, false), [long.as_str(), "call_1"]);
    }
}

/// Perplexity has no tools: what other models did with them is told as text.
#[test]
fn host_without_tools_gets_calls_as_text() {
    let history = vec![
        user("one"),
        assistant("m1", &[], vec![Content::text("Let me see."), call("c_1")]),
        result("c_1", "found"),
        user("two"),
    ];
    let sent = body("https://api.perplexity.ai", "sonar-pro", &request(history));
    assert_eq!(sent["tools"], json!(null));
    assert_eq!(
        sent["messages"],
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "Let me see.\n\n(Call c_1 of the tool read with {\"path\":\"a\"})"},
            {"role": "user", "content": "Result of the call c_1:\nfound\n\ntwo"},
        ])
    );
}
