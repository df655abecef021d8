//! Tests the witness: valid lines pass, and violations are reported.

use serde_json::json;
use turnery_acp::witness::Witness;

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}}"#;

/// Returns a witness after `initialize` and this client input.
fn initialized_witness(sent: &str) -> Witness {
    let mut witness = Witness::default();
    witness.client_wrote(format!("{INITIALIZE}\n{sent}\n").as_bytes());
    let hello = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#;
    let _ = witness.agent_wrote(hello);
    witness
}

#[test]
fn unanswered_requests_are_reported() {
    let request = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"nope"}}"#);
    let answer = |id: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"?"}}}}"#)
    };
    for id in ["7", "\"a\"", "null", "-9223372036854775808"] {
        let mut witness = initialized_witness(&request(id));
        assert!(witness.agent_closed().is_err(), "{id}");
        witness.agent_wrote(&answer(id)).expect("right");
        witness.agent_closed().expect("all is answered");
        let twice = witness.agent_wrote(&answer(id)).expect_err("twice");
        assert!(twice.starts_with("no open request has this id"), "{twice}");
    }
    let fault = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"?"}}"#;
    for line in ["nonsense", "{}", "[]", "7", r#"{"id":1.5,"method":"a"}"#] {
        let mut witness = initialized_witness(line);
        assert!(witness.agent_closed().is_err(), "{line}");
        witness.agent_wrote(fault).expect("right");
        witness.agent_closed().expect("all is answered");
    }
    for line in ["", "  ", r#"{"method":"a"}"#, r#"{"id":1,"result":1}"#] {
        let mut witness = initialized_witness(line);
        witness.agent_closed().expect("nothing is owed");
        assert!(witness.agent_wrote(fault).is_err(), "{line}");
    }
}

#[test]
fn partial_and_unterminated_lines_are_read() {
    let mut witness = Witness::default();
    for byte in INITIALIZE.bytes() {
        witness.client_wrote(&[byte]);
    }
    witness.agent_closed().expect("not a line yet");
    witness.client_closed();
    assert!(witness.agent_closed().is_err());
    witness
        .agent_wrote(HELLO)
        .expect_err("an empty list is left out");
}

#[test]
fn invalid_agent_lines_are_reported() {
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
            "no open request has this id",
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
        let mut witness = initialized_witness(
            r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#,
        );
        let said = witness.agent_wrote(&line).expect_err(&line);
        assert!(said.contains(complaint), "{said}");
    }
}

#[test]
fn result_for_invalid_params_is_rejected() {
    let made = r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}"#;
    for params in [
        "{}",
        "null",
        r#"{"cwd":"/"}"#,
        r#"{"cwd":7,"mcpServers":[]}"#,
    ] {
        let mut witness = initialized_witness(&format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"session/new","params":{params}}}"#
        ));
        let said = witness.agent_wrote(made).expect_err(params);
        assert!(said.contains("a result for params that are none"), "{said}");
    }
}

// proves: RPC-16
#[test]
fn agent_id_in_use_is_rejected() {
    let mut witness = initialized_witness("");
    let ask = r#"{"jsonrpc":"2.0","id":5,"method":"terminal/kill","params":{"sessionId":"s","terminalId":"t"}}"#;
    witness.agent_wrote(ask).expect("right");
    let twice = witness.agent_wrote(ask).expect_err("twice");
    assert!(twice.contains("the id is that of terminal/kill"), "{twice}");
    witness.client_wrote(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}\n");
    witness.agent_wrote(ask).expect("free again");
}
