//! Elicitation: questions of the model's to the person, to clients that show forms and to those that do not
//! (ELIC-1 to ELIC-8).

use crate::harness::{World, prompt, result_of};
use serde_json::{Value, json};

/// A world in which the model asks this, and then is done.
fn asking(args: Value) -> World {
    World::new(json!([
        {"steps": [{"tool_call": {"name": "ask_user", "args": args}}]},
        {"steps": [{"text": "done"}]},
    ]))
}

fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

/// The last state of the call, and what the model is told.
fn outcome(updates: &[Value]) -> (String, String) {
    let mut calls = updates.iter().rev().filter(|it| it["content"].is_array());
    let last = calls.next().expect("a call with content");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    (
        text(&last["status"]),
        text(&last["content"][0]["content"]["text"]),
    )
}

/// One field, one scope, the mode said in so many words; and the answer, in words for the model.
// proves: ELIC-2, ELIC-4, THEME-15
#[test]
fn each_form_of_answer_is_asked_for_and_understood() {
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
        let world = asking(args.clone());
        let (mut client, id) = world.session_with(forms());
        let asked = client.ask("session/prompt", prompt(&id, "hi"));
        let question = client.asked("elicitation/create");
        let shown = client.updates();
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
        client.reply(&question, answer);
        assert_eq!(result_of(&client.answer(&asked))["stopReason"], "end_turn");
        let told = outcome(&client.updates());
        assert_eq!(told, ("completed".to_owned(), expected.to_owned()));
    }
}

/// No is not later, and neither is yes; what makes no sense is no answer; the prompt goes on in each case.
// proves: ELIC-4, ELIC-5
#[test]
fn whatever_comes_back_is_told_apart() {
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
            none("the form came back empty"),
        ),
        (
            json!({"action": "accept", "content": null}),
            none("the form came back empty"),
        ),
        (
            json!({"action": "accept"}),
            none("the form came back empty"),
        ),
        (
            json!({"action": "_later", "content": {"answer": "red"}}),
            none("the client answered \"_later\""),
        ),
    ];
    for (reply, (status, text)) in table {
        let world = asking(json!({"question": "Which?", "choices": ["red", "blue"]}));
        let (mut client, id) = world.session_with(forms());
        let asked = client.ask("session/prompt", prompt(&id, "hi"));
        let question = client.asked("elicitation/create");
        client.reply(&question, reply.clone());
        assert_eq!(result_of(&client.answer(&asked))["stopReason"], "end_turn");
        let told = outcome(&client.updates());
        assert_eq!(told, (status.to_owned(), text), "{reply}");
    }
}

/// Some clients say that they show forms, and do not know the method all the same.
// proves: ELIC-4
#[test]
fn an_error_is_no_answer_and_no_end() {
    for (code, status) in [
        (-32601, "failed"),
        (-32603, "failed"),
        (-32800, "completed"),
    ] {
        let world = asking(json!({"question": "What name?"}));
        let (mut client, id) = world.session_with(forms());
        let asked = client.ask("session/prompt", prompt(&id, "hi"));
        let question = client.asked("elicitation/create");
        let error = json!({"code": code, "message": "no"});
        client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}));
        assert_eq!(result_of(&client.answer(&asked))["stopReason"], "end_turn");
        assert_eq!(outcome(&client.updates()).0, status, "{code}");
    }
}

/// Without the very object `form` nobody is asked, and the model is told that there is no such tool.
// proves: ELIC-1, INIT-7
#[test]
fn nobody_is_asked_who_shows_no_forms() {
    for abilities in [
        json!({}),
        json!({"elicitation": null}),
        json!({"elicitation": {}}),
        json!({"elicitation": true}),
        json!({"elicitation": {"form": null}}),
        json!({"elicitation": {"form": true}}),
        json!({"elicitation": {"url": {}}}),
    ] {
        let world = asking(json!({"question": "What name?"}));
        let (mut client, id) = world.session_with(abilities.clone());
        // The oracle fails for a question that was not offered to be shown.
        let answer = client.call("session/prompt", prompt(&id, "hi"));
        assert_eq!(result_of(&answer)["stopReason"], "end_turn");
        let (status, text) = outcome(&client.updates());
        assert_eq!(status, "failed", "{abilities}");
        assert!(text.contains("ask_user"), "{text}");
    }
}

/// A model that wants a secret is told to leave it, and no form is shown, nor an address.
// proves: ELIC-3, ELIC-6, ELIC-7
#[test]
fn no_secret_passes_a_form() {
    let world = asking(json!({"question": "What is your API key?"}));
    let (mut client, id) = world.session_with(json!({"elicitation": {"form": {}, "url": {}}}));
    result_of(&client.call("session/prompt", prompt(&id, "hi")));
    let seen = client.seen();
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
    let (status, text) = outcome(&updates);
    assert_eq!(status, "failed");
    assert!(
        text.contains("a secret must not be asked for here"),
        "{text}"
    );
}

// proves: CANCEL-3, CANCEL-7
#[test]
fn a_cancel_takes_a_question_back() {
    let world = asking(json!({"question": "What name?"}));
    let (mut client, id) = world.session_with(forms());
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    let question = client.asked("elicitation/create");
    client.tell("session/cancel", json!({"sessionId": id}));
    assert_eq!(result_of(&client.answer(&asked))["stopReason"], "cancelled");
    let seen = client.seen();
    let mut taken = seen.iter().filter(|it| it["method"] == "$/cancel_request");
    let back = taken.next().expect("taken back");
    assert_eq!(back["params"]["requestId"], question["id"]);
    // A late answer changes nothing.
    client.reply(
        &question,
        json!({"action": "accept", "content": {"answer": "x"}}),
    );
    let answer = client.call("session/list", json!({}));
    assert_eq!(
        result_of(&answer)["sessions"].as_array().map(Vec::len),
        Some(1)
    );
}
