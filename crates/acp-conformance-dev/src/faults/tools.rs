//! Faults of tool calls: the content and order of their reports.

use super::{fault::LineFunction, intercepted_line::InterceptedLine};
use serde_json::{Value, json};

pub(super) const FUNCTIONS: &[LineFunction] = &[
    ("call_id_reused", call_id_reused),
    ("bare_text_content", bare_text_content),
    ("relative_location", relative_location),
    ("line_zero", line_zero),
    ("diff_fragment", diff_fragment),
    ("new_file_has_empty_old_text", new_file_has_empty_old_text),
    ("call_name_late", call_name_late),
];

const STATUS: &str = "/params/update/status";

const CONTENT: &str = "/params/update/content";

fn is_v1_tool_update(m: &InterceptedLine<'_>) -> bool {
    m.is_tool_update() && m.connection.protocol_version == 1
}

fn is_final_update(m: &InterceptedLine<'_>) -> bool {
    is_v1_tool_update(m) && matches!(m.get_str(STATUS), "completed" | "failed")
}

fn is_update_of_running_prompt(m: &InterceptedLine<'_>) -> bool {
    is_v1_tool_update(m) && m.connection.running_prompt(&m.session_id()).is_some()
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

fn bare_text_content(m: &mut InterceptedLine<'_>) {
    if is_v1_tool_update(m) {
        m.edit_array(CONTENT, |items| {
            for item in items.iter_mut().filter(|item| item["type"] == "content") {
                *item = item["content"].take();
            }
        });
    }
}

fn edit_locations(m: &mut InterceptedLine<'_>, change: impl Fn(&mut Value)) {
    if is_v1_tool_update(m) {
        m.edit_array("/params/update/locations", |locations| {
            locations.iter_mut().for_each(change);
        });
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
    if is_v1_tool_update(m) {
        m.edit_diffs(CONTENT, change);
    } else if m.is_agent_call("session/request_permission") {
        m.edit_diffs("/params/toolCall/content", change);
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

fn new_file_has_empty_old_text(m: &mut InterceptedLine<'_>) {
    edit_diffs(m, |diff| {
        if diff["oldText"].is_null() {
            diff["oldText"] = json!("");
        }
    });
}

/// Reports the tool name only in the final update.
fn call_name_late(m: &mut InterceptedLine<'_>) {
    if is_update_of_running_prompt(m) && m.update_kind() == "tool_call" {
        if let Some(name) = m.remove("/params/update/name") {
            let id = m.get_str("/params/update/toolCallId").to_owned();
            m.remember(&id, name);
        }
    } else if is_final_update(m) && is_update_of_running_prompt(m) {
        let name = m.recall(m.get_str("/params/update/toolCallId"));
        if name.is_string() {
            m.set("/params/update/name", name);
        }
    }
}
