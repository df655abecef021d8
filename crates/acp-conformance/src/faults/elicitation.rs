//! Faults of questions to the user. Where the agent has none of its own, the fault asks at a prompt.

use super::{Fault, passing::Passing};
use serde_json::{Value, json};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("form_unasked", form_unasked),
    Fault::lines("url_unasked", url_unasked),
    Fault::lines("question_without_mode", question_without_mode),
    Fault::lines("question_with_two_scopes", question_with_two_scopes),
    Fault::lines("password_in_form", password_in_form),
    Fault::lines("declined_taken_for_yes", declined_taken_for_yes),
    Fault::lines("answer_not_checked", answer_not_checked),
    Fault::lines("elicitation_id_twice", elicitation_id_twice),
    Fault::lines(
        "unknown_elicitation_completed",
        unknown_elicitation_completed,
    ),
    Fault::lines("token_in_url", token_in_url),
];

const CREATE: &str = "elicitation/create";

fn prompt_begins(m: &Passing<'_>) -> bool {
    m.client_says("session/prompt")
        && m.wire.version == 1
        && m.wire.sessions.contains(&m.session())
        && m.get("/params/prompt/0").is_object()
}

fn takes(m: &Passing<'_>, mode: &str) -> bool {
    m.wire.client["elicitation"][mode].is_object()
}

fn form(session: &str, field: &str) -> Value {
    json!({"mode": "form", "sessionId": session, "message": "Please say",
        "requestedSchema": {"type": "object", "properties": {field: {"type": "string", "title": field}}}})
}

fn link(session: &str, url: &str) -> Value {
    json!({"mode": "url", "sessionId": session, "message": "Please look", "elicitationId": "e1",
        "url": url})
}

fn form_unasked(m: &mut Passing<'_>) {
    if prompt_begins(m) && !takes(m, "form") {
        let session = m.session();
        m.ask_client(CREATE, form(&session, "colour"));
    }
}

fn url_unasked(m: &mut Passing<'_>) {
    if prompt_begins(m) && takes(m, "form") && !takes(m, "url") {
        let session = m.session();
        m.ask_client(CREATE, link(&session, "https://example.com/"));
    }
}

fn question_without_mode(m: &mut Passing<'_>) {
    if prompt_begins(m) && takes(m, "form") {
        let session = m.session();
        let mut question = form(&session, "colour");
        if let Some(question) = question.as_object_mut() {
            question.remove("mode");
        }
        m.ask_client(CREATE, question);
    }
}

fn question_with_two_scopes(m: &mut Passing<'_>) {
    if prompt_begins(m) && takes(m, "form") {
        let session = m.session();
        let mut question = form(&session, "colour");
        question["requestId"] = m.get("/id").clone();
        m.ask_client(CREATE, question);
    }
}

fn password_in_form(m: &mut Passing<'_>) {
    if prompt_begins(m) && takes(m, "form") {
        let session = m.session();
        m.ask_client(CREATE, form(&session, "password"));
    }
}

/// Any answer is taken for an acceptance with the first value of each choice.
fn declined_taken_for_yes(m: &mut Passing<'_>) {
    let action = m.text("/result/action");
    if m.replies(CREATE) && matches!(action, "decline" | "cancel") {
        let content = first_values(&m.asked()["requestedSchema"]);
        m.turn_into_result(json!({"action": "accept", "content": content}));
    }
}

/// A value that was not offered is taken for the first that was.
fn answer_not_checked(m: &mut Passing<'_>) {
    if m.replies(CREATE) && m.text("/result/action") == "accept" {
        let first = first_values(&m.asked()["requestedSchema"]);
        let given = m.get("/result/content").clone();
        let properties = m.asked()["requestedSchema"]["properties"].clone();
        let wrong = properties.as_object().is_some_and(|properties| {
            properties.iter().any(|(name, schema)| {
                !offered(schema).is_empty() && !offered(schema).contains(&given[name])
            })
        });
        if wrong {
            m.set("/result/content", first);
        }
    }
}

/// The values that a property may have; none where any will do.
fn offered(schema: &Value) -> Vec<Value> {
    if let Some(values) = schema["enum"].as_array() {
        return values.clone();
    }
    let titled = schema["oneOf"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    titled.iter().map(|one| one["const"].clone()).collect()
}

fn first_values(schema: &Value) -> Value {
    let mut content = json!({});
    let properties = schema["properties"].as_object();
    for (name, property) in properties.into_iter().flatten() {
        content[name] = offered(property)
            .into_iter()
            .next()
            .unwrap_or_else(|| json!("yes"));
    }
    content
}

fn elicitation_id_twice(m: &mut Passing<'_>) {
    if prompt_begins(m) && takes(m, "url") {
        let session = m.session();
        m.ask_client(CREATE, link(&session, "https://example.com/1"));
        m.ask_client(CREATE, link(&session, "https://example.com/2"));
    }
}

fn unknown_elicitation_completed(m: &mut Passing<'_>) {
    if prompt_begins(m) && takes(m, "url") {
        m.tell_before(json!({"jsonrpc": "2.0", "method": "elicitation/complete",
            "params": {"elicitationId": "nobody-asked-this"}}));
    }
}

fn token_in_url(m: &mut Passing<'_>) {
    if prompt_begins(m) && takes(m, "url") {
        let session = m.session();
        m.ask_client(
            CREATE,
            link(&session, "https://example.com/login?access_token=abc123"),
        );
    }
}
