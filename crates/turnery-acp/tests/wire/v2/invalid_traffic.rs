//! Invalid traffic: lines that no agent may send, each caught by the grammar that all v2 tests run under.

use crate::harness::{FoldedSession, GrammarV2};
use serde_json::{Value, json};

fn update(update: Value) -> Value {
    json!({"method": "session/update", "params": {"sessionId": "s1", "update": update}})
}

fn state(state: &str) -> Value {
    update(json!({"sessionUpdate": "state_update", "state": state}))
}

fn idle_end_turn() -> Value {
    update(json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}))
}

fn tool_call(status: &str) -> Value {
    update(
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "title": "t", "status": status}),
    )
}

fn user_message() -> Value {
    update(json!({"sessionUpdate": "user_message", "messageId": "m1"}))
}

fn terminal() -> Value {
    update(json!({"sessionUpdate": "terminal_update", "terminalId": "t1"}))
}

fn terminal_output() -> Value {
    update(json!({"sessionUpdate": "terminal_output_chunk", "terminalId": "t1"}))
}

fn agent_message() -> Value {
    update(json!({"sessionUpdate": "agent_message_chunk", "messageId": "m2"}))
}

fn compaction(status: &str) -> Value {
    update(json!({"sessionUpdate": "compaction_update", "compactionId": "k1", "status": status}))
}

fn options(current: &str, values: &[&str]) -> Value {
    let values: Vec<Value> = values.iter().map(|value| json!({"value": value})).collect();
    let option = json!({"configId": "mode", "currentValue": current, "options": values});
    update(json!({"sessionUpdate": "config_option_update", "configOptions": [option]}))
}

fn broken_rule(lines: &[Value]) -> Option<String> {
    let mut grammar = GrammarV2::default();
    for (id, method) in [
        (1, "session/prompt"),
        (2, "session/close"),
        (3, "session/list"),
    ] {
        grammar.client_requested(&json!(id), method, &json!({"sessionId": "s1"}));
    }
    lines.iter().find_map(|line| grammar.agent_sent(line).err())
}

#[test]
fn valid_connection_is_accepted() {
    let exits = json!({"sessionUpdate": "terminal_update", "terminalId": "t1", "exitStatus": {}});
    let lines = [
        json!({"id": 1, "result": {"messageId": "m1"}}),
        state("running"),
        user_message(),
        agent_message(),
        tool_call("pending"),
        state("requires_action"),
        state("running"),
        tool_call("in_progress"),
        terminal(),
        terminal_output(),
        update(exits),
        tool_call("completed"),
        compaction("in_progress"),
        compaction("completed"),
        options("a", &["a", "b"]),
        idle_end_turn(),
        state("running"),
        idle_end_turn(),
        json!({"id": 2, "result": {}}),
    ];
    assert_eq!(broken_rule(&lines), None);
}

#[test]
fn every_invalid_line_is_caught() {
    let answer = |id: u64, result: Value| json!({"id": id, "result": result});
    let background = json!({"sessionUpdate": "state_update", "state": "running", "background": []});
    let question = json!({"method": "session/request_permission",
        "params": {"options": [{"optionId": "a"}, {"optionId": "a"}]}});
    let refers = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "title": "t",
        "status": "pending", "content": [{"type": "terminal", "terminalId": "t1"}]});
    let untitled =
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "pending"});
    let run = || state("running");
    for (lines, law) in [
        (vec![agent_message()], "nothing is done while idle"),
        (
            vec![run(), idle_end_turn(), tool_call("pending")],
            "nothing is done while idle",
        ),
        (vec![run(), run()], "a state is news"),
        (vec![run(), state("idle")], "work ends for a reason"),
        (vec![update(background)], "no background is told"),
        (
            vec![run(), user_message(), user_message()],
            "a message is echoed once",
        ),
        (
            vec![
                run(),
                answer(1, json!({"messageId": "m1"})),
                idle_end_turn(),
            ],
            "what was answered is echoed",
        ),
        (
            vec![run(), tool_call("in_progress")],
            "a call begins pending",
        ),
        (vec![run(), update(untitled)], "a call begins with a title"),
        (
            vec![
                run(),
                tool_call("pending"),
                tool_call("failed"),
                tool_call("completed"),
            ],
            "a call ends once",
        ),
        (
            vec![run(), tool_call("pending"), idle_end_turn()],
            "all ends before idle",
        ),
        (
            vec![run(), terminal(), idle_end_turn()],
            "all ends before idle",
        ),
        (
            vec![run(), update(refers)],
            "a terminal is told of before it is shown",
        ),
        (vec![run(), terminal_output()], "an open terminal prints"),
        (vec![run(), compaction("completed")], "a compaction begins"),
        (
            vec![options("c", &["a", "b"])],
            "an option's value is among its values",
        ),
        (vec![options("a", &["a", "a"])], "names differ"),
        (vec![options("a", &[])], "names differ"),
        (vec![question], "names differ"),
        (
            vec![run(), answer(2, json!({}))],
            "a session is idle before it is closed",
        ),
        (
            vec![answer(2, json!({})), options("a", &["a"])],
            "a closed session is silent",
        ),
    ] {
        assert_eq!(broken_rule(&lines).as_deref(), Some(law), "{lines:?}");
    }
}

/// The fold that replays are compared with tells different states apart, and only those.
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
