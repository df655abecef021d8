//! Faults of the draft of version 2.

use super::{Direction, fault::LineFunction, intercepted_line::InterceptedLine};
use serde_json::{Value, json};

pub(super) const FUNCTIONS: &[LineFunction] = &[
    ("v2_diff_as_in_v1", v2_diff_as_in_v1),
    ("v2_change_relative", v2_change_relative),
    (
        "v2_malformed_block_is_unknown",
        v2_malformed_block_is_unknown,
    ),
    ("v2_command_with_slash", v2_command_with_slash),
    ("v2_resume_without_replay", v2_resume_without_replay),
];

fn is_v2(m: &InterceptedLine<'_>) -> bool {
    m.connection.protocol_version == 2
}

fn is_tool_call_update(m: &InterceptedLine<'_>) -> bool {
    is_v2(m) && m.update_kind() == "tool_call_update"
}

fn edit_diffs(m: &mut InterceptedLine<'_>, change: impl Fn(&mut Value)) {
    if is_tool_call_update(m) {
        m.edit_diffs("/params/update/content", change);
    }
}

fn v2_diff_as_in_v1(m: &mut InterceptedLine<'_>) {
    edit_diffs(m, |diff| {
        let path = diff["changes"][0]["path"].clone();
        *diff = json!({"type": "diff", "path": path, "oldText": "a", "newText": "b"});
    });
}

fn v2_change_relative(m: &mut InterceptedLine<'_>) {
    edit_diffs(m, |diff| {
        let changes = diff["changes"].as_array_mut();
        for change in changes.into_iter().flatten() {
            let path = change["path"].as_str().unwrap_or_default();
            change["path"] = json!(path.trim_start_matches('/'));
        }
    });
}

/// Skips a text block without text, as if its type were unknown.
fn v2_malformed_block_is_unknown(m: &mut InterceptedLine<'_>) {
    if is_v2(m) && m.is_client_call("session/prompt") {
        m.retain_prompt_blocks(|block| block["type"] != "text" || block["text"].is_string());
    }
}

fn v2_command_with_slash(m: &mut InterceptedLine<'_>) {
    let pointer = if m.is_agent_result("session/new") {
        "/result/availableCommands/0/name"
    } else {
        "/params/update/availableCommands/0/name"
    };
    let name = m.get_str(pointer).to_owned();
    if is_v2(m) && !name.is_empty() {
        m.set(pointer, format!("/{name}"));
    }
}

fn pending_params(m: &InterceptedLine<'_>, method: &str) -> Option<Value> {
    let session = m.session_id();
    m.connection
        .pending_requests(Direction::ToAgent)
        .find(|open| open.method == method && open.params["sessionId"] == session)
        .map(|open| open.params.clone())
}

fn v2_resume_without_replay(m: &mut InterceptedLine<'_>) {
    let told = matches!(
        m.update_kind(),
        "user_message" | "user_message_chunk" | "agent_message" | "agent_message_chunk"
    );
    let asked =
        pending_params(m, "session/resume").is_some_and(|params| !params["replayFrom"].is_null());
    if is_v2(m) && told && asked {
        m.swallow();
    }
}
