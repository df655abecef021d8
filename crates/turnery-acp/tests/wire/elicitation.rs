//! Questions of the model to the user, for clients with and without forms (ELIC-1 to ELIC-8).

use crate::harness::{TestEnv, result_of};
use serde_json::{Value, json};

/// Creates an environment whose model asks this question and then ends.
fn env_asking(args: Value) -> TestEnv {
    TestEnv::new(json!([
        {"steps": [{"tool_call": {"name": "ask_user", "args": args}}]},
        {"steps": [{"text": "done"}]},
    ]))
}

fn form_capabilities() -> Value {
    json!({"elicitation": {"form": {}}})
}

/// Returns the status and the text of the last update of the call.
fn tool_outcome(updates: &[Value]) -> (String, String) {
    let mut calls = updates.iter().rev().filter(|it| it["content"].is_array());
    let last = calls.next().expect("a call with content");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    (
        text(&last["status"]),
        text(&last["content"][0]["content"]["text"]),
    )
}

/// A question is sent in form mode with one field, in the scope of the session and its call; the model gets
/// the answer as text.
// proves: ELIC-2, ELIC-4, THEME-15
#[test]
fn every_answer_type_round_trips() {
    let table = [
        (
            json!({"question": "Which?", "choices": ["red", "blue"]}),
            json!({"type": "string", "enum": ["red", "blue"]}),
            json!("blue"),
            "The user answers: blue",
        ),
        (
            json!({"question": "Which?", "choices": ["red", "blue"], "several": true}),
            json!({"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}}),
            json!(["red", "blue"]),
            "The user answers: red, blue",
        ),
        (
            json!({"question": "What name?"}),
            json!({"type": "string"}),
            json!("Ada"),
            "The user answers: Ada",
        ),
        (
            json!({"question": "How many?", "answer": "number"}),
            json!({"type": "number"}),
            json!(7),
            "The user answers: 7",
        ),
        (
            json!({"question": "Really?", "answer": "boolean"}),
            json!({"type": "boolean"}),
            json!(false),
            "The user answers: no",
        ),
    ];
    for (args, field, given, expected) in table {
        let world = env_asking(args.clone());
        let (mut client, id) = world.session_with(form_capabilities());
        let asked = client.send_prompt(&id, "hi");
        let question = client.wait_for_request("elicitation/create");
        let shown = client.take_updates();
        let expected_params = json!({
            "mode": "form",
            "sessionId": id,
            "toolCallId": shown[0]["toolCallId"],
            "message": args["question"],
            "requestedSchema": {
                "type": "object",
                "properties": {"answer": field},
                "required": ["answer"],
            },
        });
        assert_eq!(question["params"], expected_params);
        let answer = json!({"action": "accept", "content": {"answer": given}});
        client.respond(&question, answer);
        assert_eq!(client.wait_for_stop_reason(&asked), "end_turn");
        let told = tool_outcome(&client.take_updates());
        assert_eq!(told, ("completed".to_owned(), expected.to_owned()));
    }
}

/// Decline, cancel and accept are distinguished; malformed responses are no answer; the prompt continues in
/// each case.
// proves: ELIC-4, ELIC-5
#[test]
fn every_client_reply_is_distinguished() {
    let declined = (
        "completed",
        "The user declines to answer. Do not ask this again; go on without it, or say what you cannot do.",
    );
    let closed = (
        "completed",
        "The user closed the question without an answer: it is still open.",
    );
    let none = |why: &str| {
        let text = format!("there is no answer: {why}. Ask in your reply instead, and end it.");
        ("failed", text)
    };
    let said = |(status, text): (&'static str, &str)| (status, text.to_owned());
    let table = [
        (json!({"action": "decline"}), said(declined)),
        (
            json!({"action": "decline", "content": {"answer": "red"}}),
            said(declined),
        ),
        (json!({"action": "cancel"}), said(closed)),
        (
            json!({"action": "accept", "content": {"answer": "green"}}),
            none("what came back is no answer to this question"),
        ),
        (
            json!({"action": "accept", "content": {"answer": 7}}),
            none("what came back is no answer to this question"),
        ),
        (
            json!({"action": "accept", "content": {"other": "red"}}),
            none("the form was empty"),
        ),
        (
            json!({"action": "accept", "content": null}),
            none("the form was empty"),
        ),
        (json!({"action": "accept"}), none("the form was empty")),
        (
            json!({"action": "_later", "content": {"answer": "red"}}),
            none("the client answered \"_later\""),
        ),
    ];
    for (reply, (status, text)) in table {
        let world = env_asking(json!({"question": "Which?", "choices": ["red", "blue"]}));
        let (mut client, id) = world.session_with(form_capabilities());
        let asked = client.send_prompt(&id, "hi");
        let question = client.wait_for_request("elicitation/create");
        client.respond(&question, reply.clone());
        assert_eq!(client.wait_for_stop_reason(&asked), "end_turn");
        let told = tool_outcome(&client.take_updates());
        assert_eq!(told, (status.to_owned(), text), "{reply}");
    }
}

/// Some clients declare forms without knowing the method.
// proves: ELIC-4
#[test]
fn client_error_is_no_answer_and_prompt_goes_on() {
    for (code, status) in [
        (-32601, "failed"),
        (-32603, "failed"),
        (-32800, "completed"),
    ] {
        let world = env_asking(json!({"question": "What name?"}));
        let (mut client, id) = world.session_with(form_capabilities());
        let asked = client.send_prompt(&id, "hi");
        let question = client.wait_for_request("elicitation/create");
        let error = json!({"code": code, "message": "no"});
        client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}));
        assert_eq!(client.wait_for_stop_reason(&asked), "end_turn");
        assert_eq!(tool_outcome(&client.take_updates()).0, status, "{code}");
    }
}

/// Without the object `form` no question is sent, and the model learns that there is no such tool.
// proves: ELIC-1, INIT-7
#[test]
fn client_without_forms_is_not_asked() {
    for abilities in [
        json!({}),
        json!({"elicitation": null}),
        json!({"elicitation": {}}),
        json!({"elicitation": true}),
        json!({"elicitation": {"form": null}}),
        json!({"elicitation": {"form": true}}),
        json!({"elicitation": {"url": {}}}),
    ] {
        let world = env_asking(json!({"question": "What name?"}));
        let (mut client, id) = world.session_with(abilities.clone());
        // The oracle fails on a question the client did not declare support for.
        assert_eq!(client.prompt(&id, "hi"), "end_turn");
        let (status, text) = tool_outcome(&client.take_updates());
        assert_eq!(status, "failed", "{abilities}");
        assert!(text.contains("ask_user"), "{text}");
    }
}

/// A model that asks for a secret gets an error; neither a form nor a URL is shown.
// proves: ELIC-3, ELIC-6, ELIC-7
#[test]
fn question_for_secret_fails_without_a_form() {
    let world = env_asking(json!({"question": "What is your API key?"}));
    let (mut client, id) = world.session_with(json!({"elicitation": {"form": {}, "url": {}}}));
    client.prompt(&id, "hi");
    let seen = client.take_buffered();
    let is_asked = |it: &Value| {
        it["method"]
            .as_str()
            .is_some_and(|name| name.starts_with("elicit"))
    };
    assert!(!seen.iter().any(is_asked), "{seen:?}");
    let updates: Vec<Value> = seen
        .iter()
        .map(|message| message["params"]["update"].clone())
        .collect();
    let (status, text) = tool_outcome(&updates);
    assert_eq!(status, "failed");
    assert!(
        text.contains("a secret must not be asked for here"),
        "{text}"
    );
}

// proves: CANCEL-3, CANCEL-7
#[test]
fn cancel_withdraws_the_question() {
    let world = env_asking(json!({"question": "What name?"}));
    let (mut client, id) = world.session_with(form_capabilities());
    let asked = client.send_prompt(&id, "hi");
    let question = client.wait_for_request("elicitation/create");
    client.cancel(&id);
    assert_eq!(client.wait_for_stop_reason(&asked), "cancelled");
    let seen = client.take_buffered();
    let mut taken = seen.iter().filter(|it| it["method"] == "$/cancel_request");
    let back = taken.next().expect("taken back");
    assert_eq!(back["params"]["requestId"], question["id"]);
    // A late response changes nothing.
    client.respond(
        &question,
        json!({"action": "accept", "content": {"answer": "x"}}),
    );
    let answer = client.request("session/list", json!({}));
    assert_eq!(
        result_of(&answer)["sessions"].as_array().map(Vec::len),
        Some(1)
    );
}
