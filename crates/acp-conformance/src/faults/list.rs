//! Faults of the list of sessions, and of closing and deleting them.

use super::{
    Fault,
    passing::{Passing, made_up_update},
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

fn empty_list_without_key(m: &mut Passing<'_>) {
    if m.grants("session/list") && m.get(SESSIONS).as_array().is_some_and(Vec::is_empty) {
        m.unset(SESSIONS);
    }
}

fn list_of_all_folders(m: &mut Passing<'_>) {
    if m.client_says("session/list") {
        m.unset("/params/cwd");
    }
}

/// A cursor that this connection never gave out is left out.
fn bad_cursor_ignored(m: &mut Passing<'_>) {
    if m.grants("session/list") && m.has("/result/nextCursor") {
        let cursor = m.text("/result/nextCursor").to_owned();
        m.keep(&cursor, true);
    } else if m.client_says("session/list") && m.has("/params/cursor") {
        let known = m.note(m.text("/params/cursor")) == true;
        if !known {
            m.unset("/params/cursor");
        }
    }
}

fn each_session(m: &mut Passing<'_>, change: impl Fn(&mut Value)) {
    if m.grants("session/list")
        && let Some(sessions) = m.edit().pointer_mut(SESSIONS).and_then(Value::as_array_mut)
    {
        sessions.iter_mut().for_each(change);
    }
}

fn list_touches_sessions(m: &mut Passing<'_>) {
    if m.grants("session/list") {
        let second = m.count("lists") % 60;
        each_session(m, |session| {
            session["updatedAt"] = json!(format!("2099-01-01T00:00:{second:02}Z"));
        });
    }
}

fn time_as_seconds(m: &mut Passing<'_>) {
    each_session(m, |session| {
        if session["updatedAt"].is_string() {
            session["updatedAt"] = json!("1795282800");
        }
    });
}

/// Closing is answered at once; the session goes on working, and is closed only when it is done.
fn close_lets_turn_run(m: &mut Passing<'_>) {
    let session = m.session();
    if m.client_says("session/close") && m.wire.prompt_in(&session).is_some() {
        m.respond(json!({}));
        m.keep("close", session);
    } else if m.answers("session/prompt") && m.note("close") == json!(session) {
        m.ask_agent("session/close", json!({"sessionId": session}));
    }
}

fn close_keeps_session(m: &mut Passing<'_>) {
    let session = m.session();
    let open = m.wire.sessions.contains(&session) && m.wire.version == 1;
    if m.client_says("session/close") && open && m.wire.prompt_in(&session).is_none() {
        m.respond(json!({}));
    }
}

fn update_after_close(m: &mut Passing<'_>) {
    if m.grants("session/close") && m.wire.version == 1 {
        let session = m.session();
        m.tell(made_up_update(
            &session,
            json!({"sessionUpdate": "session_info_update", "title": "Closed"}),
        ));
    }
}

fn delete_does_nothing(m: &mut Passing<'_>) {
    let session = m.session();
    if m.client_says("session/delete") && m.note(&session).is_null() {
        m.respond(json!({}));
    }
}

fn second_delete_fails(m: &mut Passing<'_>) {
    let session = m.session();
    if m.grants("session/delete") {
        if m.note(&session) == true {
            m.turn_into_error(-32002, "no such session");
            m.set("/error/data", json!({"sessionId": session}));
        }
        m.keep(&session, true);
    }
}

fn delete_of_active_hangs(m: &mut Passing<'_>) {
    if m.client_says("session/delete") && m.wire.sessions.contains(&m.session()) {
        m.swallow();
    }
}
