//! Faults of the draft of version 2: the envelope, calls, terminals and diffs.

use super::{Direction, Fault, intercepted_line::InterceptedLine};
use serde_json::{Value, json};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("v2_newer_version_refused", v2_newer_version_refused),
    Fault::lines("v2_no_version_wrong_code", v2_no_version_wrong_code),
    Fault::lines("v2_null_id_taken", v2_null_id_taken),
    Fault::lines("v2_error_without_id", v2_error_without_id),
    Fault::lines("v2_call_as_in_v1", v2_call_as_in_v1),
    Fault::lines("v2_call_title_lost", v2_call_title_lost),
    Fault::lines("v2_terminal_plain_text", v2_terminal_plain_text),
    Fault::lines("v2_diff_as_in_v1", v2_diff_as_in_v1),
    Fault::lines("v2_change_relative", v2_change_relative),
    Fault::lines("v2_unknown_option_allows", v2_unknown_option_allows),
    Fault::lines("v2_unknown_method_code", v2_unknown_method_code),
    Fault::lines("v2_unknown_session_code", v2_unknown_session_code),
    Fault::lines("v2_unsupported_content_code", v2_unsupported_content_code),
    Fault::lines("v2_any_call_cancellable", v2_any_call_cancellable),
    Fault::lines(
        "v2_malformed_block_is_unknown",
        v2_malformed_block_is_unknown,
    ),
    Fault::lines("v2_command_with_slash", v2_command_with_slash),
    Fault::lines("v2_options_null", v2_options_null),
];

fn is_v2(m: &InterceptedLine<'_>) -> bool {
    m.connection.protocol_version == 2
}

fn v2_newer_version_refused(m: &mut InterceptedLine<'_>) {
    let newer = m
        .get("/params/protocolVersion")
        .as_u64()
        .is_some_and(|v| v > 2);
    if m.is_client_call("initialize") && newer && m.has("/params/info") {
        m.respond_error(-32602, "this version is not spoken");
    }
}

fn v2_no_version_wrong_code(m: &mut InterceptedLine<'_>) {
    if m.is_agent_response("initialize") && m.is_agent_error(-32022) {
        m.set("/error/code", -32602);
    }
}

/// Answers a request whose id is null.
fn v2_null_id_taken(m: &mut InterceptedLine<'_>) {
    if is_v2(m)
        && m.direction == Direction::ToAgent
        && m.message.get("id") == Some(&Value::Null)
        && m.has("/method")
    {
        m.respond(json!({"sessions": []}));
    }
}

fn v2_error_without_id(m: &mut InterceptedLine<'_>) {
    if is_v2(m) && m.is_agent_error(-32602) && m.request_params()["sessionId"].is_string() {
        m.set("/id", Value::Null);
    }
}

fn is_tool_call_update(m: &InterceptedLine<'_>) -> bool {
    is_v2(m) && m.update_kind() == "tool_call_update"
}

/// Sends the update `tool_call`, which version 2 no longer has.
fn v2_call_as_in_v1(m: &mut InterceptedLine<'_>) {
    if is_tool_call_update(m) && m.has("/params/update/title") {
        m.set("/params/update/sessionUpdate", "tool_call");
    }
}

/// Removes titles of tool calls.
fn v2_call_title_lost(m: &mut InterceptedLine<'_>) {
    if is_tool_call_update(m) && m.has("/params/update/title") {
        m.remove("/params/update/title");
    }
}

/// Sends plain text; its comma and newline are not valid base64.
fn v2_terminal_plain_text(m: &mut InterceptedLine<'_>) {
    if is_v2(m) && m.update_kind() == "terminal_output_chunk" {
        m.set("/params/update/data", "hello, world!\n");
    }
}

fn edit_diffs(m: &mut InterceptedLine<'_>, change: impl Fn(&mut Value)) {
    if is_tool_call_update(m)
        && let Some(items) = m.get("/params/update/content").as_array()
        && items.iter().any(|item| item["type"] == "diff")
    {
        let mut items = items.clone();
        let diffs = items.iter_mut().filter(|item| item["type"] == "diff");
        diffs.for_each(change);
        m.set("/params/update/content", items);
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

fn v2_unknown_option_allows(m: &mut InterceptedLine<'_>) {
    if is_v2(m) && m.is_client_response("session/request_permission") {
        let options = m.request_params()["options"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let id = m.get("/result/outcome/optionId");
        if options.iter().any(|option| option["optionId"] == *id) || m.has("/error") {
            return;
        }
        let allow = options.iter().find(|option| option["kind"] == "allow_once");
        let allow = allow.map(|option| option["optionId"].clone());
        m.turn_into_result(json!({"outcome": {"outcome": "selected", "optionId": allow}}));
    }
}

fn v2_unknown_method_code(m: &mut InterceptedLine<'_>) {
    if is_v2(m) && m.is_agent_error(-32601) {
        m.set("/error/code", -32603);
    }
}

fn v2_unknown_session_code(m: &mut InterceptedLine<'_>) {
    if is_v2(m) && m.is_agent_error(-32002) {
        m.set("/error/code", -32602);
    }
}

fn v2_unsupported_content_code(m: &mut InterceptedLine<'_>) {
    if is_v2(m) && m.is_agent_response("session/prompt") && m.is_agent_error(-32602) {
        m.set("/error/code", -32603);
    }
}

fn v2_any_call_cancellable(m: &mut InterceptedLine<'_>) {
    let asks = m.is_client_call("tool_call/cancel") || m.is_client_call("terminal/cancel");
    if is_v2(m) && asks {
        m.respond(json!({}));
    }
}

/// Skips a text block without text, as if its type were unknown.
fn v2_malformed_block_is_unknown(m: &mut InterceptedLine<'_>) {
    if is_v2(m)
        && m.is_client_call("session/prompt")
        && let Some(blocks) = m.get("/params/prompt").as_array()
    {
        let right = |block: &&Value| block["type"] != "text" || block["text"].is_string();
        let kept: Vec<_> = blocks.iter().filter(right).cloned().collect();
        if kept.len() < blocks.len() {
            let kept = if kept.is_empty() {
                vec![json!({"type": "text", "text": "nothing"})]
            } else {
                kept
            };
            m.set("/params/prompt", kept);
        }
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

fn v2_options_null(m: &mut InterceptedLine<'_>) {
    if is_v2(m) && m.is_agent_result("session/new") {
        m.set("/result/configOptions", Value::Null);
    }
}
