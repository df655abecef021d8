//! v2: the draft of the second version, over a real connection. Every line is checked by its schema.

mod abilities;
mod calls;
mod cancelling;
mod commands;
mod negotiating;
mod prompting;
mod replaying;
mod sessions;
mod wrong;

use serde_json::Value;

/// What the updates say of the session's state, in order; an idle one with its reason.
fn states(updates: &[Value]) -> Vec<String> {
    updates
        .iter()
        .filter(|update| update["sessionUpdate"] == "state_update")
        .map(|update| {
            assert!(update.get("background").is_none(), "{update}");
            let state = update["state"].as_str().expect("a state");
            match update["stopReason"].as_str() {
                Some(reason) => format!("{state} {reason}"),
                None => state.to_owned(),
            }
        })
        .collect()
}

/// Whether a message says that the session is idle.
fn is_idle(message: &Value) -> bool {
    message["params"]["update"]["state"] == "idle"
}

/// The updates of one kind.
fn of_kind<'a>(updates: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let fits = |update: &&Value| update["sessionUpdate"] == kind;
    updates.iter().filter(fits).collect()
}
