//! Tests of version 2 rules that span messages, with valid and invalid streams.

use super::*;
use std::collections::BTreeMap;

pub(super) const V2_SESSION: &[&str] = &[
    r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"}}}"#,
    r#"< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"}}}"#,
    r#"> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/"}}"#,
    r#"< {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#,
];

/// Returns a line of a stream; an object alone is a session update.
pub(super) fn whole_line(text: &str) -> String {
    match text.starts_with('{') {
        true => update(text),
        false => text.to_owned(),
    }
}

#[test]
fn streams_break_just_the_named_rule() {
    let mut messages: BTreeMap<&str, String> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (number, line) in (1..).zip(include_str!("v2.txt").lines()) {
        if let Some((name, message)) = line.strip_prefix("= ").and_then(|it| it.split_once(' ')) {
            messages.insert(name, whole_line(message));
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        let rule = words.next().filter(|word| *word != "ok");
        let lines: Vec<&str> = words.map(|name| messages[name].as_str()).collect();
        let broken = violations_after(&[V2_SESSION], &lines, None);
        if broken != Vec::from_iter(rule) {
            wrong.push((number, line, broken));
        }
    }
    assert_eq!(wrong, []);
}

#[test]
fn negotiated_version_is_at_most_requested() {
    let one = r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    let seven =
        r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":7}}"#;
    assert_eq!(violations_after(&[], &[one, V2_SESSION[1]], None), ["V2-1"]);
    assert_eq!(
        violations_after(&[], &[seven, V2_SESSION[1]], None),
        nothing()
    );
}

#[test]
fn null_id_of_agent_request_is_a_violation() {
    let ask = r#"< {"jsonrpc":"2.0","id":null,"method":"session/request_permission","params":{"sessionId":"s","title":"t","subject":{"type":"tool_call","toolCall":{"toolCallId":"t"}},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}}"#;
    assert!(violations_after(&[V2_SESSION], &[ask], None).contains(&"V2-3"));
}
