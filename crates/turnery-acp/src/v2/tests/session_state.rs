//! Tests state updates.

use super::parse_updates;
use crate::{transport::update_writer::UpdateWriter, v2::session_state::StateReporter};
use agent_client_protocol_schema::v2::IdleStateUpdate;
use serde_json::Value;

fn reported_states(what: &[fn(&mut StateReporter, &mut UpdateWriter)]) -> Vec<String> {
    let mut state = StateReporter::default();
    let mut to = UpdateWriter::new("s1");
    for happens in what {
        happens(&mut state, &mut to);
    }
    let states = parse_updates(&to.lines).into_iter().map(|update| {
        // V2-9: background work is never reported, so it is on no update.
        assert!(update.get("background").is_none());
        match &update["state"] {
            Value::String(state) => state.clone(),
            other => panic!("{other}"),
        }
    });
    states.collect()
}

fn become_idle(state: &mut StateReporter, to: &mut UpdateWriter) {
    state.become_idle(IdleStateUpdate::new(), to);
}

// proves: V2-8, V2-9
/// The session requires action only while no call runs, and only changes of its state are reported.
#[test]
fn state_is_reported_when_it_changes() {
    assert_eq!(reported_states(&[become_idle]), [] as [&str; 0]);
    assert_eq!(
        reported_states(&[
            StateReporter::begin_loop,
            StateReporter::begin_loop,
            become_idle,
            become_idle
        ]),
        ["running", "idle"]
    );
    assert_eq!(
        reported_states(&[
            StateReporter::begin_loop,
            StateReporter::begin_question,
            StateReporter::end_question,
            StateReporter::begin_call,
            StateReporter::end_call,
            become_idle
        ]),
        ["running", "requires_action", "running", "idle"]
    );
    // Another call runs while permission for one is pending.
    assert_eq!(
        reported_states(&[
            StateReporter::begin_loop,
            StateReporter::begin_call,
            StateReporter::begin_question,
            StateReporter::end_call
        ]),
        ["running", "requires_action"]
    );
    // A cancel ends the wait without an answer; the next prompt starts from idle.
    assert_eq!(
        reported_states(&[
            StateReporter::begin_loop,
            StateReporter::begin_question,
            become_idle,
            StateReporter::begin_loop,
            StateReporter::begin_question
        ]),
        [
            "running",
            "requires_action",
            "idle",
            "running",
            "requires_action"
        ]
    );
}
