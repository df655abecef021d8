//! Faults of listing, closing and deleting sessions.

use super::{
    fault::Fault,
    intercepted_line::{InterceptedLine, injected_update},
};
use serde_json::{Value, json};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("empty_list_without_key", empty_list_without_key),
    Fault::lines("list_of_all_folders", list_of_all_folders),
    Fault::lines("bad_cursor_ignored", bad_cursor_ignored),
    Fault::lines("list_touches_sessions", list_touches_sessions),
    Fault::lines("time_as_seconds", time_as_seconds),
    Fault::lines("close_lets_turn_run", close_lets_turn_run),
    Fault::lines("close_keeps_session", close_keeps_session),
    Fault::lines("update_after_close", update_after_close),
    Fault::lines("delete_does_nothing", delete_does_nothing),
    Fault::lines("second_delete_fails", second_delete_fails),
    Fault::lines("delete_of_active_hangs", delete_of_active_hangs),
];

const SESSIONS: &str = "/result/sessions";

fn empty_list_without_key(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/list") && m.get(SESSIONS).as_array().is_some_and(Vec::is_empty) {
        m.remove(SESSIONS);
    }
}

fn list_of_all_folders(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("session/list") {
        m.remove("/params/cwd");
    }
}

/// Removes a cursor that was not issued on this connection.
fn bad_cursor_ignored(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/list") && m.has("/result/nextCursor") {
        let cursor = m.get_str("/result/nextCursor").to_owned();
        m.remember(&cursor, true);
    } else if m.is_client_call("session/list") && m.has("/params/cursor") {
        let known = m.recall(m.get_str("/params/cursor")) == true;
        if !known {
            m.remove("/params/cursor");
        }
    }
}

fn edit_sessions(m: &mut InterceptedLine<'_>, change: impl Fn(&mut Value)) {
    if m.is_agent_result("session/list")
        && let Some(sessions) = m
            .message_mut()
            .pointer_mut(SESSIONS)
            .and_then(Value::as_array_mut)
    {
        sessions.iter_mut().for_each(change);
    }
}

fn list_touches_sessions(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/list") {
        let second = m.increment("lists") % 60;
        edit_sessions(m, |session| {
            session["updatedAt"] = json!(format!("2099-01-01T00:00:{second:02}Z"));
        });
    }
}

fn time_as_seconds(m: &mut InterceptedLine<'_>) {
    edit_sessions(m, |session| {
        if session["updatedAt"].is_string() {
            session["updatedAt"] = json!("1795282800");
        }
    });
}

/// Answers a close at once, but closes the session only when its turn has ended.
fn close_lets_turn_run(m: &mut InterceptedLine<'_>) {
    let session = m.session_id();
    if m.is_client_call("session/close") && m.connection.running_prompt(&session).is_some() {
        m.respond(json!({}));
        m.remember("close", session);
    } else if m.is_agent_response("session/prompt") && m.recall("close") == json!(session) {
        m.send_request_to_agent("session/close", json!({"sessionId": session}));
    }
}

fn close_keeps_session(m: &mut InterceptedLine<'_>) {
    let session = m.session_id();
    let open = m.connection.open_sessions.contains(&session) && m.connection.protocol_version == 1;
    if m.is_client_call("session/close") && open && m.connection.running_prompt(&session).is_none()
    {
        m.respond(json!({}));
    }
}

fn update_after_close(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/close") && m.connection.protocol_version == 1 {
        let session = m.session_id();
        m.send_to_client(injected_update(
            &session,
            json!({"sessionUpdate": "session_info_update", "title": "Closed"}),
        ));
    }
}

fn delete_does_nothing(m: &mut InterceptedLine<'_>) {
    let session = m.session_id();
    if m.is_client_call("session/delete") && m.recall(&session).is_null() {
        m.respond(json!({}));
    }
}

fn second_delete_fails(m: &mut InterceptedLine<'_>) {
    let session = m.session_id();
    if m.is_agent_result("session/delete") {
        if m.recall(&session) == true {
            m.turn_into_error(-32002, "no such session");
            m.set("/error/data", json!({"sessionId": session}));
        }
        m.remember(&session, true);
    }
}

fn delete_of_active_hangs(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("session/delete") && m.connection.open_sessions.contains(&m.session_id()) {
        m.swallow();
    }
}
