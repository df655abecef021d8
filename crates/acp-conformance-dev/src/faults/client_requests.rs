//! Faults of the agent's requests for permission, files and elicitations.

use super::{
    Direction,
    fault::LineFunction,
    intercepted_line::{InterceptedLine, option_id_of_kind, selected_outcome},
};
use serde_json::json;

pub(super) const FUNCTIONS: &[LineFunction] = &[
    ("runs_before_answer", runs_before_answer),
    ("options_with_one_id", options_with_one_id),
    ("file_path_relative", file_path_relative),
    ("link_id_twice", link_id_twice),
];

const REQUEST_PERMISSION: &str = "session/request_permission";
const CREATE_ELICITATION: &str = "elicitation/create";

/// Sends the permission request only at the end of the turn, so that the call has always run before the
/// answer.
fn runs_before_answer(m: &mut InterceptedLine<'_>) {
    let is_over = m.is_agent_response("session/prompt")
        || m.update_kind() == "state_update" && m.get_str("/params/update/state") == "idle";
    if m.is_agent_call(REQUEST_PERMISSION) {
        let allow = option_id_of_kind(m.get("/params/options"), "allow_once");
        let response = m.result_response(selected_outcome(&allow));
        m.send_after(Direction::ToAgent, response);
        m.hold();
    } else if m.is_client_response(REQUEST_PERMISSION) {
        m.swallow();
    } else if is_over {
        m.release_before();
    }
}

/// Appends a copy of the first permission option, with the same id and another name.
fn options_with_one_id(m: &mut InterceptedLine<'_>) {
    if m.is_agent_call(REQUEST_PERMISSION) {
        m.edit_array("/params/options", |options| {
            // Keep the original options, so that every answer keeps its meaning.
            if let Some(mut twin) = options.first().cloned() {
                twin["name"] = json!("The same again");
                options.push(twin);
            }
        });
    }
}

fn file_path_relative(m: &mut InterceptedLine<'_>) {
    if m.is_agent_call("fs/read_text_file") || m.is_agent_call("fs/write_text_file") {
        let path = m.get_str("/params/path").trim_start_matches('/').to_owned();
        m.set("/params/path", path);
    }
}

/// Reuses the id of an open elicitation for a URL elicitation.
fn link_id_twice(m: &mut InterceptedLine<'_>) {
    if m.is_agent_call(CREATE_ELICITATION) && m.get_str("/params/mode") == "url" {
        let asking = m.get("/id").clone();
        let id = m
            .connection
            .pending_requests(Direction::ToClient)
            .find_map(|open| {
                let is_other = open.method == CREATE_ELICITATION && open.id != asking;
                let id = open.params["elicitationId"].as_str().filter(|_| is_other);
                id.map(str::to_owned)
            });
        if let Some(id) = id {
            m.set("/params/elicitationId", id);
        }
    }
}
