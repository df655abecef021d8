//! The draft of the second protocol version over a real connection. Every line is validated against its
//! schema.

mod cancellation;
mod capabilities;
mod commands;
mod fold;
mod invalid_params;
mod negotiation;
mod prompts;
mod queued_prompts;
mod replay;
mod tool_calls;

use serde_json::Value;

/// Returns the reported states in order; idle ones with their stop reason.
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

/// Returns true if a message reports the idle state.
fn is_idle(message: &Value) -> bool {
    message["params"]["update"]["state"] == "idle"
}

/// Returns the updates of one kind.
fn of_kind<'a>(updates: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let fits = |update: &&Value| update["sessionUpdate"] == kind;
    updates.iter().filter(fits).collect()
}
