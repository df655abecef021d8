//! Faults of tool calls: the content and order of their reports.

use super::{fault::Fault, intercepted_line::InterceptedLine};
use serde_json::{Value, json};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("calls_not_reported", calls_not_reported),
    Fault::lines("update_without_call", update_without_call),
    Fault::lines("call_id_reused", call_id_reused),
    Fault::lines("call_without_title", call_without_title),
    Fault::lines("never_in_progress", never_in_progress),
    Fault::lines("call_left_open", call_left_open),
    Fault::lines("final_call_reopened", final_call_reopened),
    Fault::lines("bare_text_content", bare_text_content),
    Fault::lines("relative_location", relative_location),
    Fault::lines("line_zero", line_zero),
    Fault::lines("diff_fragment", diff_fragment),
    Fault::lines("diff_of_new_file_empty", diff_of_new_file_empty),
    Fault::lines("unknown_terminal_shown", unknown_terminal_shown),
    Fault::lines("call_name_changes", call_name_changes),
    Fault::lines("call_name_late", call_name_late),
    Fault::lines("call_status_cancelled", call_status_cancelled),
    Fault::lines("unknown_tool_kind", unknown_tool_kind),
];

const STATUS: &str = "/params/update/status";
const CONTENT: &str = "/params/update/content";

fn is_v1_tool_update(m: &InterceptedLine<'_>) -> bool {
    m.is_tool_update() && m.connection.protocol_version == 1
}

fn is_final_update(m: &InterceptedLine<'_>) -> bool {
    is_v1_tool_update(m) && matches!(m.get_str(STATUS), "completed" | "failed")
}

fn is_live_update(m: &InterceptedLine<'_>) -> bool {
    is_v1_tool_update(m) && m.connection.running_prompt(&m.session_id()).is_some()
}

fn calls_not_reported(m: &mut InterceptedLine<'_>) {
    if is_live_update(m) {
        m.swallow();
    }
}

fn update_without_call(m: &mut InterceptedLine<'_>) {
    if is_live_update(m) && m.update_kind() == "tool_call" {
        m.swallow();
    }
}

/// Gives every call the id of the first.
fn call_id_reused(m: &mut InterceptedLine<'_>) {
    let pointer = if is_v1_tool_update(m) {
        "/params/update/toolCallId"
    } else if m.is_agent_call("session/request_permission") {
        "/params/toolCall/toolCallId"
    } else {
        return;
    };
    if m.recall("id").is_null() {
        let id = m.get(pointer).clone();
        m.remember("id", id);
    }
    let id = m.recall("id");
    m.set(pointer, id);
}

fn call_without_title(m: &mut InterceptedLine<'_>) {
    if is_live_update(m) && m.update_kind() == "tool_call" {
        m.remove("/params/update/title");
    }
}

fn never_in_progress(m: &mut InterceptedLine<'_>) {
    if is_live_update(m) && m.get_str(STATUS) == "in_progress" {
        if m.update_kind() == "tool_call" {
            m.set(STATUS, "pending");
        } else {
            m.remove(STATUS);
        }
    }
}

fn call_left_open(m: &mut InterceptedLine<'_>) {
    if is_final_update(m) && is_live_update(m) && m.get_str(STATUS) == "completed" {
        m.set(STATUS, "in_progress");
    }
}

fn final_call_reopened(m: &mut InterceptedLine<'_>) {
    if is_final_update(m) && is_live_update(m) {
        let mut again = m.message.clone();
        let last = m.message.clone();
        again["params"]["update"] = json!({"sessionUpdate": "tool_call_update",
            "toolCallId": m.get("/params/update/toolCallId"), "status": "in_progress"});
        m.send_to_client(again);
        m.send_to_client(last);
    }
}

fn bare_text_content(m: &mut InterceptedLine<'_>) {
    if is_v1_tool_update(m)
        && let Some(items) = m.get(CONTENT).as_array().cloned()
    {
        let bare = items.into_iter().map(|item| {
            if item["type"] == "content" {
                item["content"].clone()
            } else {
                item
            }
        });
        m.set(CONTENT, bare.collect::<Vec<_>>());
    }
}

fn edit_locations(m: &mut InterceptedLine<'_>, change: impl Fn(&mut Value)) {
    if is_v1_tool_update(m)
        && let Some(locations) = m.get("/params/update/locations").as_array()
        && !locations.is_empty()
    {
        let mut locations = locations.clone();
        locations.iter_mut().for_each(change);
        m.set("/params/update/locations", locations);
    }
}

fn relative_location(m: &mut InterceptedLine<'_>) {
    edit_locations(m, |location| {
        let path = location["path"].as_str().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        location["path"] = json!(name);
    });
}

fn line_zero(m: &mut InterceptedLine<'_>) {
    edit_locations(m, |location| location["line"] = json!(0));
}

fn edit_diffs(m: &mut InterceptedLine<'_>, change: impl Fn(&mut Value)) {
    let pointer = if is_v1_tool_update(m) {
        CONTENT
    } else if m.is_agent_call("session/request_permission") {
        "/params/toolCall/content"
    } else {
        return;
    };
    if let Some(items) = m.get(pointer).as_array()
        && items.iter().any(|item| item["type"] == "diff")
    {
        let mut items = items.clone();
        let diffs = items.iter_mut().filter(|item| item["type"] == "diff");
        diffs.for_each(change);
        m.set(pointer, items);
    }
}

/// Truncates each side of a diff to its first line.
fn diff_fragment(m: &mut InterceptedLine<'_>) {
    edit_diffs(m, |diff| {
        for side in ["oldText", "newText"] {
            if let Some(text) = diff[side].as_str() {
                diff[side] = json!(text.lines().next().unwrap_or_default());
            }
        }
    });
}

fn diff_of_new_file_empty(m: &mut InterceptedLine<'_>) {
    edit_diffs(m, |diff| {
        if diff["oldText"].is_null() {
            diff["oldText"] = json!("");
        }
    });
}

fn unknown_terminal_shown(m: &mut InterceptedLine<'_>) {
    if is_live_update(m) && m.update_kind() == "tool_call" {
        m.set(
            CONTENT,
            json!([{"type": "terminal", "terminalId": "nobody-made-this-one"}]),
        );
    }
}

fn call_name_changes(m: &mut InterceptedLine<'_>) {
    if is_final_update(m) && is_live_update(m) {
        m.set("/params/update/name", "another_tool");
    }
}

/// Reports the tool name only in the final update.
fn call_name_late(m: &mut InterceptedLine<'_>) {
    if is_live_update(m) && m.update_kind() == "tool_call" {
        if let Some(name) = m.remove("/params/update/name") {
            let id = m.get_str("/params/update/toolCallId").to_owned();
            m.remember(&id, name);
        }
    } else if is_final_update(m) && is_live_update(m) {
        let name = m.recall(m.get_str("/params/update/toolCallId"));
        if name.is_string() {
            m.set("/params/update/name", name);
        }
    }
}

/// Uses the status `cancelled`, which version 1 does not have.
fn call_status_cancelled(m: &mut InterceptedLine<'_>) {
    if is_live_update(m) && m.get_str(STATUS) == "failed" && m.recall(&m.session_id()) == true {
        m.set(STATUS, "cancelled");
    } else if m.is_client_call("session/cancel") {
        let session = m.session_id();
        m.remember(&session, true);
    } else if m.is_agent_response("session/prompt") {
        let session = m.session_id();
        m.remember(&session, false);
    }
}

fn unknown_tool_kind(m: &mut InterceptedLine<'_>) {
    if is_v1_tool_update(m) && m.has("/params/update/kind") {
        m.set("/params/update/kind", "shell");
    }
}
