//! Faults of tool calls: what is told of them, in which words and order.

use super::{Fault, passing::Passing};
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

fn is_v1_tool_update(m: &Passing<'_>) -> bool {
    m.is_tool_update() && m.wire.version == 1
}

fn is_final(m: &Passing<'_>) -> bool {
    is_v1_tool_update(m) && matches!(m.text(STATUS), "completed" | "failed")
}

fn live(m: &Passing<'_>) -> bool {
    is_v1_tool_update(m) && m.wire.prompt_in(&m.session()).is_some()
}

fn calls_not_reported(m: &mut Passing<'_>) {
    if live(m) {
        m.swallow();
    }
}

fn update_without_call(m: &mut Passing<'_>) {
    if live(m) && m.update() == "tool_call" {
        m.swallow();
    }
}

/// Every call of a turn has the id of the first.
fn call_id_reused(m: &mut Passing<'_>) {
    let pointer = if is_v1_tool_update(m) {
        "/params/update/toolCallId"
    } else if m.agent_says("session/request_permission") {
        "/params/toolCall/toolCallId"
    } else {
        return;
    };
    if m.note("id").is_null() {
        let id = m.get(pointer).clone();
        m.keep("id", id);
    }
    let id = m.note("id");
    m.set(pointer, id);
}

fn call_without_title(m: &mut Passing<'_>) {
    if live(m) && m.update() == "tool_call" {
        m.unset("/params/update/title");
    }
}

fn never_in_progress(m: &mut Passing<'_>) {
    if live(m) && m.text(STATUS) == "in_progress" {
        if m.update() == "tool_call" {
            m.set(STATUS, "pending");
        } else {
            m.unset(STATUS);
        }
    }
}

fn call_left_open(m: &mut Passing<'_>) {
    if is_final(m) && live(m) && m.text(STATUS) == "completed" {
        m.set(STATUS, "in_progress");
    }
}

fn final_call_reopened(m: &mut Passing<'_>) {
    if is_final(m) && live(m) {
        let mut again = m.value.clone();
        let last = m.value.clone();
        again["params"]["update"] = json!({"sessionUpdate": "tool_call_update",
            "toolCallId": m.get("/params/update/toolCallId"), "status": "in_progress"});
        m.tell(again);
        m.tell(last);
    }
}

fn bare_text_content(m: &mut Passing<'_>) {
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

fn each_location(m: &mut Passing<'_>, change: impl Fn(&mut Value)) {
    if is_v1_tool_update(m)
        && let Some(locations) = m.get("/params/update/locations").as_array()
        && !locations.is_empty()
    {
        let mut locations = locations.clone();
        locations.iter_mut().for_each(change);
        m.set("/params/update/locations", locations);
    }
}

fn relative_location(m: &mut Passing<'_>) {
    each_location(m, |location| {
        let path = location["path"].as_str().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        location["path"] = json!(name);
    });
}

fn line_zero(m: &mut Passing<'_>) {
    each_location(m, |location| location["line"] = json!(0));
}

fn each_diff(m: &mut Passing<'_>, change: impl Fn(&mut Value)) {
    let pointer = if is_v1_tool_update(m) {
        CONTENT
    } else if m.agent_says("session/request_permission") {
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

/// Only the first line of each side.
fn diff_fragment(m: &mut Passing<'_>) {
    each_diff(m, |diff| {
        for side in ["oldText", "newText"] {
            if let Some(text) = diff[side].as_str() {
                diff[side] = json!(text.lines().next().unwrap_or_default());
            }
        }
    });
}

fn diff_of_new_file_empty(m: &mut Passing<'_>) {
    each_diff(m, |diff| {
        if diff["oldText"].is_null() {
            diff["oldText"] = json!("");
        }
    });
}

fn unknown_terminal_shown(m: &mut Passing<'_>) {
    if live(m) && m.update() == "tool_call" {
        m.set(
            CONTENT,
            json!([{"type": "terminal", "terminalId": "nobody-made-this-one"}]),
        );
    }
}

fn call_name_changes(m: &mut Passing<'_>) {
    if is_final(m) && live(m) {
        m.set("/params/update/name", "another_tool");
    }
}

/// The name is told only when all is over.
fn call_name_late(m: &mut Passing<'_>) {
    if live(m) && m.update() == "tool_call" {
        if let Some(name) = m.unset("/params/update/name") {
            let id = m.text("/params/update/toolCallId").to_owned();
            m.keep(&id, name);
        }
    } else if is_final(m) && live(m) {
        let name = m.note(m.text("/params/update/toolCallId"));
        if name.is_string() {
            m.set("/params/update/name", name);
        }
    }
}

/// The word that version 1 does not have.
fn call_status_cancelled(m: &mut Passing<'_>) {
    if live(m) && m.text(STATUS) == "failed" && m.note(&m.session()) == true {
        m.set(STATUS, "cancelled");
    } else if m.client_says("session/cancel") {
        let session = m.session();
        m.keep(&session, true);
    } else if m.answers("session/prompt") {
        let session = m.session();
        m.keep(&session, false);
    }
}

fn unknown_tool_kind(m: &mut Passing<'_>) {
    if is_v1_tool_update(m) && m.has("/params/update/kind") {
        m.set("/params/update/kind", "shell");
    }
}
