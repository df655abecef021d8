//! Tests [`FoldedSession`], by which live and replayed updates are compared.

use crate::harness::FoldedSession;
use serde_json::{Value, json};

/// Updates fold to equal sessions if and only if they leave a client with the same state: for absent, null
/// and set fields, chunks, order of messages, and refused prompts.
#[test]
fn fold_distinguishes_absent_null_and_value() {
    let call = |fields: Value| {
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1"});
        for (key, value) in fields.as_object().expect("an object") {
            update[key] = value.clone();
        }
        update
    };
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let first = call(json!({"title": "a", "locations": [1], "_meta": {"x": {"p": 1}, "y": 1}}));
    let same = |one: &[Value], other: &[Value]| {
        FoldedSession::from_updates(one) == FoldedSession::from_updates(other)
    };
    let then = |later: Value| [first.clone(), call(later)];
    // Absent keeps, null and an empty list clear, metadata is patched.
    assert!(same(&then(json!({})), std::slice::from_ref(&first)));
    assert!(!same(
        &then(json!({"title": null})),
        std::slice::from_ref(&first)
    ));
    assert!(!same(
        &then(json!({"title": "b"})),
        std::slice::from_ref(&first)
    ));
    for cleared in [json!([]), json!(null)] {
        let told = then(json!({"locations": cleared, "_meta": {"y": null}}));
        let known = call(json!({"title": "a", "_meta": {"x": {"p": 1}}}));
        assert!(same(&told, &[known]));
    }
    // Chunks append, a whole message replaces.
    let whole = |id: &str, words: &str| json!({"sessionUpdate": "agent_message", "messageId": id, "content": text(words)});
    let chunk = |words: &str| json!({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": text(words)[0]});
    assert!(same(&[chunk("a"), chunk("b")], &[whole("m", "ab")]));
    assert!(same(&[chunk("a"), whole("m", "b")], &[whole("m", "b")]));
    assert!(!same(&[chunk("a"), chunk("b")], &[whole("m", "a")]));
    assert!(!same(
        &[whole("m", "a"), whole("n", "b")],
        &[whole("n", "b"), whole("m", "a")]
    ));
    // A refused prompt removes its results.
    let state = |state: &str, reason: Value| json!({"sessionUpdate": "state_update", "state": state, "stopReason": reason});
    let told = [
        whole("m", "a"),
        state("running", json!(null)),
        whole("n", "b"),
        state("idle", json!("refusal")),
    ];
    assert!(same(&told, &[whole("m", "a")]));
    let other = [
        state("running", json!(null)),
        state("idle", json!("end_turn")),
    ];
    assert!(same(&other, &[]));
}
