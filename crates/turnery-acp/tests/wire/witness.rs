//! The witness itself: it takes what is right, and names what is not.

use serde_json::json;
use turnery_acp::witness::Witness;

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}}"#;

/// A connection on which this was sent, after the introduction.
fn after(sent: &str) -> Witness {
    let mut witness = Witness::default();
    witness.sent(format!("{INITIALIZE}\n{sent}\n").as_bytes());
    let hello = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#;
    let _ = witness.heard(hello);
    witness
}

#[test]
fn what_is_owed_is_known() {
    let request = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"nope"}}"#);
    let answer = |id: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"?"}}}}"#)
    };
    for id in ["7", "\"a\"", "null", "-9223372036854775808"] {
        let mut witness = after(&request(id));
        assert!(witness.ended().is_err(), "{id}");
        witness.heard(&answer(id)).expect("right");
        witness.ended().expect("all is answered");
        let twice = witness.heard(&answer(id)).expect_err("twice");
        assert!(twice.starts_with("nobody asked"), "{twice}");
    }
    let fault = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"?"}}"#;
    for line in ["nonsense", "{}", "[]", "7", r#"{"id":1.5,"method":"a"}"#] {
        let mut witness = after(line);
        assert!(witness.ended().is_err(), "{line}");
        witness.heard(fault).expect("right");
        witness.ended().expect("all is answered");
    }
    for line in ["", "  ", r#"{"method":"a"}"#, r#"{"id":1,"result":1}"#] {
        let mut witness = after(line);
        witness.ended().expect("nothing is owed");
        assert!(witness.heard(fault).is_err(), "{line}");
    }
}

#[test]
fn a_line_may_come_in_pieces_and_without_an_end() {
    let mut witness = Witness::default();
    for byte in INITIALIZE.bytes() {
        witness.sent(&[byte]);
    }
    witness.ended().expect("not a line yet");
    witness.closed();
    assert!(witness.ended().is_err());
    witness.heard(HELLO).expect_err("an empty list is left out");
}

#[test]
fn what_is_wrong_is_named() {
    let text = json!({"type": "text", "text": "x"});
    let update = |update: serde_json::Value| {
        json!({"jsonrpc": "2.0", "method": "session/update",
            "params": {"sessionId": "s", "update": update}})
        .to_string()
    };
    let table = [
        ("nonsense".to_owned(), "no JSON object"),
        ("[]".to_owned(), "no JSON object"),
        (r#"{"id":1,"result":{}}"#.to_owned(), "no \"jsonrpc\""),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#.to_owned(),
            "a message of no sort",
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"result":{},"more":1}"#.to_owned(),
            "a message of no sort",
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"result":{}}"#.to_owned(),
            "nobody asked",
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"result":{}}"#.to_owned(),
            "\"sessionId\" is a required property",
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","session_id":1}}"#.to_owned(),
            "the official types read of it only",
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32099,"message":"?"}}"#.to_owned(),
            "the code -32099 is reserved",
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"error":{"code":"1","message":"?"}}"#.to_owned(),
            "is not valid under any of",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"x/y","params":{}}"#.to_owned(),
            "does not know this method",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"session/update","params":{}}"#.to_owned(),
            "does not know this method",
        ),
        (
            update(json!({"sessionUpdate": "agent_message_chunk"})),
            "not valid",
        ),
        (
            update(json!({"sessionUpdate": "agent_message_chunks", "content": text})),
            "not valid",
        ),
        (
            update(json!({"sessionUpdate": "agent_message_chunk", "content": text, "x": 1})),
            "the official types read of it only",
        ),
    ];
    for (line, complaint) in table {
        let mut witness = after(
            r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#,
        );
        let said = witness.heard(&line).expect_err(&line);
        assert!(said.contains(complaint), "{said}");
    }
}

#[test]
fn params_that_are_none_have_no_result() {
    let made = r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}"#;
    for params in [
        "{}",
        "null",
        r#"{"cwd":"/"}"#,
        r#"{"cwd":7,"mcpServers":[]}"#,
    ] {
        let mut witness = after(&format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"session/new","params":{params}}}"#
        ));
        let said = witness.heard(made).expect_err(params);
        assert!(said.contains("a result for params that are none"), "{said}");
    }
}

// proves: RPC-16
#[test]
fn an_id_of_the_agent_is_used_once_at_a_time() {
    let mut witness = after("");
    let ask = r#"{"jsonrpc":"2.0","id":5,"method":"terminal/kill","params":{"sessionId":"s","terminalId":"t"}}"#;
    witness.heard(ask).expect("right");
    let twice = witness.heard(ask).expect_err("twice");
    assert!(twice.contains("the id is that of terminal/kill"), "{twice}");
    witness.sent(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}\n");
    witness.heard(ask).expect("free again");
}
