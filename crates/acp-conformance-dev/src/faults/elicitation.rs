//! Faults of elicitations. Some faults send their own at a prompt, as the agent may have none.

use super::{connection_state::Direction, fault::Fault, intercepted_line::InterceptedLine};
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

fn is_prompt_start(m: &InterceptedLine<'_>) -> bool {
    m.is_client_call("session/prompt")
        && m.connection.protocol_version == 1
        && m.connection.open_sessions.contains(&m.session_id())
        && m.get("/params/prompt/0").is_object()
}

fn client_supports(m: &InterceptedLine<'_>, mode: &str) -> bool {
    m.connection.client_capabilities["elicitation"][mode].is_object()
}

fn form_request(session: &str, field: &str) -> Value {
    json!({"mode": "form", "sessionId": session, "message": format!("Please say your {field}"),
        "requestedSchema": {"type": "object", "properties": {field: {"type": "string", "title": field}}}})
}

fn url_request(session: &str, url: &str) -> Value {
    json!({"mode": "url", "sessionId": session, "message": "Please look", "elicitationId": "e1",
        "url": url})
}

fn form_unasked(m: &mut InterceptedLine<'_>) {
    if is_prompt_start(m) && !client_supports(m, "form") {
        let session = m.session_id();
        m.send_request_to_client(CREATE, form_request(&session, "colour"));
    }
}

fn url_unasked(m: &mut InterceptedLine<'_>) {
    if is_prompt_start(m) && client_supports(m, "form") && !client_supports(m, "url") {
        let session = m.session_id();
        m.send_request_to_client(CREATE, url_request(&session, "https://example.com/"));
    }
}

fn question_without_mode(m: &mut InterceptedLine<'_>) {
    if is_prompt_start(m) && client_supports(m, "form") {
        let session = m.session_id();
        let mut question = form_request(&session, "colour");
        if let Some(question) = question.as_object_mut() {
            question.remove("mode");
        }
        m.send_request_to_client(CREATE, question);
    }
}

fn question_with_two_scopes(m: &mut InterceptedLine<'_>) {
    if is_prompt_start(m) && client_supports(m, "form") {
        let session = m.session_id();
        let mut question = form_request(&session, "colour");
        question["requestId"] = m.get("/id").clone();
        m.send_request_to_client(CREATE, question);
    }
}

/// Keeps waiting for an elicitation that was declined or cancelled.
fn declined_hangs(m: &mut InterceptedLine<'_>) {
    if m.is_client_response(CREATE) && matches!(m.get_str("/result/action"), "decline" | "cancel") {
        m.swallow();
    }
}

/// Reuses the id of an open elicitation for a URL elicitation.
fn link_id_twice(m: &mut InterceptedLine<'_>) {
    if m.is_agent_call(CREATE) && m.get_str("/params/mode") == "url" {
        let asking = m.get("/id").clone();
        let id = m
            .connection
            .pending_requests(Direction::ToClient)
            .find_map(|open| {
                let is_other = open.method == CREATE && open.id != asking;
                let id = open.params["elicitationId"].as_str().filter(|_| is_other);
                id.map(str::to_owned)
            });
        if let Some(id) = id {
            m.set("/params/elicitationId", id);
        }
    }
}

fn unknown_elicitation_completed(m: &mut InterceptedLine<'_>) {
    if is_prompt_start(m) && client_supports(m, "url") {
        m.send_to_client_before(json!({"jsonrpc": "2.0", "method": "elicitation/complete",
            "params": {"elicitationId": "nobody-asked-this"}}));
    }
}
