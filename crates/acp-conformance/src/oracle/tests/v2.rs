//! Tests of version 2 that v2.txt cannot express: another beginning, and a message that breaks two rules.

use super::*;

pub(super) const V2_SESSION: &[&str] = &[
    r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"}}}"#,
    r#"< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"}}}"#,
    r#"> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/"}}"#,
    r#"< {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#,
];

#[test]
fn negotiated_version_is_at_most_requested() {
    let one = r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    let seven =
        r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":7}}"#;
    assert_eq!(violations_after(&[], &[one, V2_SESSION[1]], None), ["V2-1"]);
    assert_eq!(
        violations_after(&[], &[seven, V2_SESSION[1]], None),
        no_violations()
    );
}

#[test]
fn null_id_of_agent_request_is_a_violation() {
    let ask = r#"< {"jsonrpc":"2.0","id":null,"method":"session/request_permission","params":{"sessionId":"s","title":"t","subject":{"type":"tool_call","toolCall":{"toolCallId":"t"}},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}}"#;
    assert!(violations_after(&[V2_SESSION], &[ask], None).contains(&"V2-3"));
}
