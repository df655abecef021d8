//! Faults of permission requests: their options, their time, and the handling of answers.

use super::{fault::Fault, intercepted_line::InterceptedLine};
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

const REQUEST_PERMISSION: &str = "session/request_permission";

/// Returns the id of the first option of this kind, or null.
fn option_id_of_kind(options: &Value, kind: &str) -> Value {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let fits = options.iter().find(|option| option["kind"] == kind);
    fits.map(|option| option["optionId"].clone())
        .unwrap_or_default()
}

/// Returns the kind of the chosen option; empty if no offered option was chosen.
fn chosen_kind(m: &InterceptedLine<'_>) -> String {
    let id = m.get("/result/outcome/optionId");
    let options = m.request_params()["options"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let kind = options
        .into_iter()
        .find(|option| option["optionId"] == *id)
        .map(|option| option["kind"].clone());
    kind.as_ref()
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn selected_outcome(id: &Value) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": id}})
}

/// Sends the permission request only at the end of the turn, so that the call has always run before the
/// answer.
fn runs_before_answer(m: &mut InterceptedLine<'_>) {
    let is_over = m.is_agent_response("session/prompt")
        || m.update_kind() == "state_update" && m.get_str("/params/update/state") == "idle";
    if m.is_agent_call(REQUEST_PERMISSION) {
        let allow = option_id_of_kind(m.get("/params/options"), "allow_once");
        let id = m.get("/id").clone();
        m.send_to_agent(json!({"jsonrpc": "2.0", "id": id, "result": selected_outcome(&allow)}));
        m.hold();
    } else if m.is_client_response(REQUEST_PERMISSION) {
        m.swallow();
    } else if is_over {
        m.release_before();
    }
}

fn options_with_one_id(m: &mut InterceptedLine<'_>) {
    if m.is_agent_call(REQUEST_PERMISSION)
        && let Some(options) = m.get("/params/options").as_array()
        && let Some(first) = options.first()
    {
        let mut options = options.clone();
        // Keep the original options, so that every answer keeps its meaning.
        let mut twin = first.clone();
        twin["name"] = json!("The same again");
        options.push(twin);
        m.set("/params/options", options);
    }
}

fn no_options(m: &mut InterceptedLine<'_>) {
    if m.is_agent_call(REQUEST_PERMISSION) {
        m.set("/params/options", json!([]));
    }
}

fn question_without_call(m: &mut InterceptedLine<'_>) {
    if m.is_agent_call(REQUEST_PERMISSION) {
        m.remove("/params/toolCall/toolCallId");
    }
}

fn replace_with_allow(m: &mut InterceptedLine<'_>) {
    let allow = option_id_of_kind(&m.request_params()["options"], "allow_once");
    m.turn_into_result(selected_outcome(&allow));
}

fn reject_allows(m: &mut InterceptedLine<'_>) {
    if m.is_client_response(REQUEST_PERMISSION) && chosen_kind(m) == "reject_once" {
        replace_with_allow(m);
    }
}

fn cancelled_allows(m: &mut InterceptedLine<'_>) {
    if m.is_client_response(REQUEST_PERMISSION)
        && m.get_str("/result/outcome/outcome") == "cancelled"
    {
        replace_with_allow(m);
    }
}

fn unknown_option_allows(m: &mut InterceptedLine<'_>) {
    let selected = m.get_str("/result/outcome/outcome") == "selected";
    if m.is_client_response(REQUEST_PERMISSION) && selected && chosen_kind(m).is_empty() {
        replace_with_allow(m);
    }
}

fn unknown_outcome_allows(m: &mut InterceptedLine<'_>) {
    let known = ["selected", "cancelled"].contains(&m.get_str("/result/outcome/outcome"));
    if m.is_client_response(REQUEST_PERMISSION) && m.message.get("result").is_some() && !known {
        replace_with_allow(m);
    }
}

fn error_allows(m: &mut InterceptedLine<'_>) {
    if m.is_client_response(REQUEST_PERMISSION) && m.has("/error") {
        replace_with_allow(m);
    }
}

fn reject_ends_turn(m: &mut InterceptedLine<'_>) {
    if m.is_client_response(REQUEST_PERMISSION) && chosen_kind(m) == "reject_once" {
        let session = m.session_id();
        m.send_to_agent(json!({"jsonrpc": "2.0", "method": "session/cancel",
            "params": {"sessionId": session}}));
    }
}

fn no_reject_offered(m: &mut InterceptedLine<'_>) {
    if m.is_agent_call(REQUEST_PERMISSION)
        && let Some(options) = m.get("/params/options").as_array()
    {
        let plain = options
            .iter()
            .filter(|option| option["kind"] != "reject_once");
        let options: Vec<_> = plain.cloned().collect();
        m.set("/params/options", options);
    }
}

fn allow_always_forgotten(m: &mut InterceptedLine<'_>) {
    if m.is_client_response(REQUEST_PERMISSION) && chosen_kind(m) == "allow_always" {
        replace_with_allow(m);
    }
}
