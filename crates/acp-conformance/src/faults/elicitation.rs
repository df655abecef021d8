//! Faults of questions to the user. Where the agent has none of its own, the fault asks at a prompt.

use super::{Fault, passing::Passing, wire::Way};
use serde_json::{Value, json};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("form_unasked", form_unasked),
    Fault::lines("url_unasked", url_unasked),
    Fault::lines("question_without_mode", question_without_mode),
    Fault::lines("question_with_two_scopes", question_with_two_scopes),
    Fault::lines("declined_hangs", declined_hangs),
    Fault::lines("link_id_twice", link_id_twice),
    Fault::lines(
        "unknown_elicitation_completed",
        unknown_elicitation_completed,
    ),
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
    json!({"mode": "form", "sessionId": session, "message": format!("Please say your {field}"),
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

/// A question that is declined or closed is waited for still.
fn declined_hangs(m: &mut Passing<'_>) {
    if m.replies(CREATE) && matches!(m.text("/result/action"), "decline" | "cancel") {
        m.swallow();
    }
}

/// A link takes the id of one that is open still.
fn link_id_twice(m: &mut Passing<'_>) {
    if m.agent_says(CREATE) && m.text("/params/mode") == "url" {
        let asking = m.get("/id").clone();
        let id = m.wire.open(Way::ToClient).find_map(|open| {
            let is_other = open.method == CREATE && open.id != asking;
            let id = open.params["elicitationId"].as_str().filter(|_| is_other);
            id.map(str::to_owned)
        });
        if let Some(id) = id {
            m.set("/params/elicitationId", id);
        }
    }
}

fn unknown_elicitation_completed(m: &mut Passing<'_>) {
    if prompt_begins(m) && takes(m, "url") {
        m.tell_before(json!({"jsonrpc": "2.0", "method": "elicitation/complete",
            "params": {"elicitationId": "nobody-asked-this"}}));
    }
}
