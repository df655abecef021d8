//! The state of a session, as it is told.

use super::updates;
use crate::{update::UpdateWriter, v2::state::State};
use agent_client_protocol_schema::v2::IdleStateUpdate;
use serde_json::Value;

fn told(what: &[fn(&mut State, &mut UpdateWriter)]) -> Vec<String> {
    let mut state = State::default();
    let mut to = UpdateWriter::new("s1");
    for happens in what {
        happens(&mut state, &mut to);
    }
    let states = updates(&to.lines).into_iter().map(|update| {
        // V2-9: background work is never reported, so it is on no update.
        assert!(update.get("background").is_none());
        match &update["state"] {
            Value::String(state) => state.clone(),
            other => panic!("{other}"),
        }
    });
    states.collect()
}

fn rests(state: &mut State, to: &mut UpdateWriter) {
    state.rests(IdleStateUpdate::new(), to);
}

// proves: V2-8, V2-9
/// The person is waited for only when nothing else is at work; only what is news is
/// told, and what was told to begin is told to end.
#[test]
fn a_state_is_told_when_it_changes() {
    assert_eq!(told(&[rests]), [] as [&str; 0]);
    assert_eq!(
        told(&[State::begins, State::begins, rests, rests]),
        ["running", "idle"]
    );
    assert_eq!(
        told(&[
            State::begins,
            State::asks,
            State::answered,
            State::call_runs,
            State::call_ended,
            rests
        ]),
        ["running", "requires_action", "running", "idle"]
    );
    // Another call is at work while one is asked about.
    assert_eq!(
        told(&[
            State::begins,
            State::call_runs,
            State::asks,
            State::call_ended
        ]),
        ["running", "requires_action"]
    );
    // A cancel ends it without an answer, and the next prompt begins anew.
    assert_eq!(
        told(&[
            State::begins,
            State::asks,
            rests,
            State::begins,
            State::asks
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
