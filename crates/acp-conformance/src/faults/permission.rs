//! Faults of permission: who is asked, when, and what an answer is taken for.

use super::{Fault, passing::Passing};
use serde_json::{Value, json};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("runs_before_answer", runs_before_answer),
    Fault::lines("options_with_one_id", options_with_one_id),
    Fault::lines("no_options", no_options),
    Fault::lines("question_without_call", question_without_call),
    Fault::lines("reject_allows", reject_allows),
    Fault::lines("cancelled_allows", cancelled_allows),
    Fault::lines("unknown_option_allows", unknown_option_allows),
    Fault::lines("unknown_outcome_allows", unknown_outcome_allows),
    Fault::lines("error_allows", error_allows),
    Fault::lines("reject_ends_turn", reject_ends_turn),
    Fault::lines("no_reject_offered", no_reject_offered),
    Fault::lines("allow_always_forgotten", allow_always_forgotten),
];

const ASK: &str = "session/request_permission";

/// The id of the offered option of this kind.
fn option(options: &Value, kind: &str) -> Value {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let fits = options.iter().find(|option| option["kind"] == kind);
    fits.map(|option| option["optionId"].clone())
        .unwrap_or_default()
}

/// Which kind of option the client chose; empty if it chose none that was offered.
fn chosen(m: &Passing<'_>) -> String {
    let id = m.get("/result/outcome/optionId");
    let options = m.asked()["options"].as_array().cloned().unwrap_or_default();
    let kind = options
        .into_iter()
        .find(|option| option["optionId"] == *id)
        .map(|option| option["kind"].clone());
    kind.as_ref()
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn selected(id: &Value) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": id}})
}

/// It asks when all is done: how far it gets before the answer does not depend on who is quicker.
fn runs_before_answer(m: &mut Passing<'_>) {
    let is_over = m.answers("session/prompt")
        || m.update() == "state_update" && m.text("/params/update/state") == "idle";
    if m.agent_says(ASK) {
        let allow = option(m.get("/params/options"), "allow_once");
        let id = m.get("/id").clone();
        m.tell_agent(json!({"jsonrpc": "2.0", "id": id, "result": selected(&allow)}));
        m.hold();
    } else if m.replies(ASK) {
        m.swallow();
    } else if is_over {
        m.release_before();
    }
}

fn options_with_one_id(m: &mut Passing<'_>) {
    if m.agent_says(ASK)
        && let Some(options) = m.get("/params/options").as_array()
        && let Some(first) = options.first()
    {
        let mut options = options.clone();
        // One more, so that every answer still means what it says.
        let mut twin = first.clone();
        twin["name"] = json!("The same again");
        options.push(twin);
        m.set("/params/options", options);
    }
}

fn no_options(m: &mut Passing<'_>) {
    if m.agent_says(ASK) {
        m.set("/params/options", json!([]));
    }
}

fn question_without_call(m: &mut Passing<'_>) {
    if m.agent_says(ASK) {
        m.unset("/params/toolCall/toolCallId");
    }
}

fn allow(m: &mut Passing<'_>) {
    let allow = option(&m.asked()["options"], "allow_once");
    m.turn_into_result(selected(&allow));
}

fn reject_allows(m: &mut Passing<'_>) {
    if m.replies(ASK) && chosen(m) == "reject_once" {
        allow(m);
    }
}

fn cancelled_allows(m: &mut Passing<'_>) {
    if m.replies(ASK) && m.text("/result/outcome/outcome") == "cancelled" {
        allow(m);
    }
}

fn unknown_option_allows(m: &mut Passing<'_>) {
    let selected = m.text("/result/outcome/outcome") == "selected";
    if m.replies(ASK) && selected && chosen(m).is_empty() {
        allow(m);
    }
}

fn unknown_outcome_allows(m: &mut Passing<'_>) {
    let known = ["selected", "cancelled"].contains(&m.text("/result/outcome/outcome"));
    if m.replies(ASK) && m.value.get("result").is_some() && !known {
        allow(m);
    }
}

fn error_allows(m: &mut Passing<'_>) {
    if m.replies(ASK) && m.has("/error") {
        allow(m);
    }
}

fn reject_ends_turn(m: &mut Passing<'_>) {
    if m.replies(ASK) && chosen(m) == "reject_once" {
        let session = m.session();
        m.tell_agent(json!({"jsonrpc": "2.0", "method": "session/cancel",
            "params": {"sessionId": session}}));
    }
}

fn no_reject_offered(m: &mut Passing<'_>) {
    if m.agent_says(ASK)
        && let Some(options) = m.get("/params/options").as_array()
    {
        let plain = options
            .iter()
            .filter(|option| option["kind"] != "reject_once");
        let options: Vec<_> = plain.cloned().collect();
        m.set("/params/options", options);
    }
}

fn allow_always_forgotten(m: &mut Passing<'_>) {
    if m.replies(ASK) && chosen(m) == "allow_always" {
        allow(m);
    }
}
