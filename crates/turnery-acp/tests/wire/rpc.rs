//! Transport and JSON-RPC (TR-1 to TR-11, RPC-1 to RPC-22), over real pipes.

use crate::harness::{TestClient, TestEnv, error_of, result_of};
use serde_json::{Value, json};
use std::{path::PathBuf, sync::Arc};
use turnery_acp::ServeOptions;
use turnery_agent::{Projects, Settings, SettingsError};

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;

/// Expects an error response with this code and id.
fn expect_error(client: &mut TestClient, code: i64, id: &Value) {
    let answer = client.next_message().expect("an answer");
    assert_eq!((error_of(&answer), &answer["id"]), (code, id), "{answer}");
}

fn probe(client: &mut TestClient) {
    let answer = client.initialize(json!({}));
    assert_eq!(result_of(&answer)["protocolVersion"], 1);
}

/// RPC-2: compared byte for byte, since JSON values would hide differences.
// proves: RPC-1, RPC-2, RPC-4
#[test]
fn request_ids_are_echoed_unchanged() {
    let ids = [
        "0",
        "-1",
        "\"0\"",
        "\"\"",
        "9007199254740993",
        "9223372036854775807",
        "-9223372036854775808",
        "\"7b0b3c6e-97a5-4f35-9a3a-2a6f4e2a9a11\"",
        r#""\u0041\"""#,
        "null",
    ];
    for id in ids {
        for (method, expected) in [("initialize", "result"), ("nope", "error")] {
            let world = TestEnv::without_answers();
            let mut client = world.connect();
            client.write_raw(format!("{INITIALIZE}\n"));
            client.write_raw(format!(
                "{{\"method\":\"{method}\",\"params\":{{\"protocolVersion\":1}},\"id\":{id},\"jsonrpc\":\"2.0\"}}\n"
            ));
            let lines = client.close_and_read_lines();
            let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{expected}\":{{");
            assert!(lines[1].starts_with(&head), "{}", lines[1]);
            assert_eq!(lines.len(), 2);
        }
    }
}

/// RPC-3, RPC-6, RPC-7, RPC-8: one error each, and the connection continues.
// proves: UP-39, RPC-3, RPC-6, RPC-7, RPC-8, RPC-13, G-25
#[test]
fn malformed_lines_get_one_error_each() {
    let table: [(&[u8], i64); 11] = [
        (b"{\"a\":", -32700),
        (b"nonsense", -32700),
        (b"\xff\xfe", -32700),
        (b"{}", -32600),
        (b"17", -32600),
        (b"[]", -32600),
        (b"[1]", -32600),
        (
            br#"[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}]"#,
            -32600,
        ),
        (
            br#"{"jsonrpc":"2.0","id":1.5,"method":"initialize"}"#,
            -32600,
        ),
        (
            br#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"initialize"}"#,
            -32600,
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":7}"#,
            -32600,
        ),
    ];
    let world = TestEnv::without_answers();
    let mut client = world.connect();
    for (line, code) in table {
        client.write_raw(line);
        client.write_raw("\n");
        expect_error(&mut client, code, &Value::Null);
    }
    probe(&mut client);
    assert_eq!(client.close_and_join().1, [] as [Value; 0]);
}

/// RPC-5, RPC-17, RPC-20, CANCEL-1, CANCEL-8, REQC-4: no response.
// proves: ACP-47, RPC-5, RPC-7, RPC-17, RPC-20, CANCEL-1, CANCEL-8, REQC-4, EXT-4
#[test]
fn notifications_get_no_response() {
    let world = TestEnv::without_answers();
    let mut client = world.client(json!({}));
    for line in [
        r#"{"jsonrpc":"2.0","method":"session/cancel"}"#,
        r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":7}}"#,
        r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"none"}}"#,
        r#"{"jsonrpc":"2.0","method":"_x/y","params":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","method":"foo/bar","params":[1]}"#,
        r#"{"jsonrpc":"2.0","method":"$/foo"}"#,
        r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":99}}"#,
        r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":1}}"#,
        r#"{"jsonrpc":"2.0","id":5,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":"a","result":{},"error":{"code":1,"message":"x"}}"#,
    ] {
        client.write_raw(line);
        client.write_raw("\n");
    }
    probe(&mut client);
    assert_eq!(client.close_and_join().1, [] as [Value; 0]);
}

/// TR-10, TR-1.
// proves: TR-1, TR-10
#[test]
fn line_endings_and_partial_writes_are_accepted() {
    let world = TestEnv::without_answers();
    let mut client = world.connect();
    client.write_raw(format!("\n\r\n  \n{INITIALIZE}\r\n\n"));
    let unicode = r#"{"jsonrpc":"2.0","id":"é☃𝄞","method":"nope"}"#;
    for byte in unicode.as_bytes() {
        client.write_raw([*byte]);
    }
    client.close_input();
    let lines = client.close_and_read_lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("\"id\":1,\"result\""), "{}", lines[0]);
    assert!(
        lines[1].contains("\"id\":\"é☃𝄞\",\"error\""),
        "{}",
        lines[1]
    );
}

/// TR-9: a line of 33 MiB is read, one of more than 64 MiB is rejected with a specific error, and the
/// connection stays usable.
// proves: TR-9, G-14
#[test]
fn line_over_limit_is_rejected() {
    let world = TestEnv::without_answers();
    let mut client = world.client(json!({}));
    let junk = "x".repeat(33 << 20);
    let params = json!({"protocolVersion": 1, "_meta": {"junk": junk}});
    assert_eq!(
        result_of(&client.request("initialize", params))["protocolVersion"],
        1
    );
    client.write_raw("y".repeat(65 << 20));
    client.write_raw("\n");
    let refused = client.next_message().expect("an answer");
    assert_eq!((error_of(&refused), &refused["id"]), (-32600, &Value::Null));
    assert_eq!(refused["error"]["data"]["limit"], 64 << 20);
    probe(&mut client);
}

/// RPC-9, EXT-4.
// proves: UP-39, RPC-9, EXT-4, G-26
#[test]
fn unknown_methods_are_rejected() {
    let world = TestEnv::without_answers();
    let mut client = world.client(json!({}));
    for method in [
        "nope/nope",
        "session/set_model",
        "session/freeze",
        "_x/y",
        "providers/list",
        "",
    ] {
        let answer = client.request(method, json!({}));
        assert_eq!(error_of(&answer), -32601, "{method}");
    }
}

/// INIT-12: every request before `initialize` is rejected; afterwards it works.
// proves: ACP-2, INIT-12
#[test]
fn initialize_comes_first() {
    let world = TestEnv::without_answers();
    let mut client = world.connect();
    for method in [
        "session/new",
        "session/list",
        "authenticate",
        "session/prompt",
        "nope",
    ] {
        let answer = client.request(method, json!({}));
        assert_eq!(error_of(&answer), -32600, "{method}");
    }
    probe(&mut client);
}

/// INIT-6, INIT-11, AUTH-1, AUTH-3, AUTH-11.
// proves: INIT-6, INIT-11, RPC-21, EXT-1, EXT-5
#[test]
fn advertised_capabilities_are_exact() {
    let world = TestEnv::without_answers();
    let mut client = world.connect();
    let answer = client.initialize(json!({}));
    let expected = json!({
        "protocolVersion": 1,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
            "mcpCapabilities": {"http": true, "sse": false},
            "sessionCapabilities":
                {"list": {}, "delete": {}, "additionalDirectories": {}, "fork": {}, "resume": {}, "close": {},
                 "archive": {}, "status": {}, "title": {},
                 "systemPrompt": {"mode": {"override": {}}}},
            "auth": {"logout": {}, "status": {}},
            "_meta": {"turnery": {
                "steer": "_turnery/session/steer",
                "followUp": "_turnery/session/follow_up",
            }},
        },
        "authMethods": [{
            "id": "none",
            "name": "Existing keys",
            "description": "From the environment, the configuration or turnery login; without any the offline model answers",
        }],
        "agentInfo": {"name": "turnery", "title": "turnery", "version": env!("CARGO_PKG_VERSION")},
    });
    assert_eq!(result_of(&answer), &expected);
}

/// AUTH-4, AUTH-5.
#[test]
fn default_login_needs_no_key() {
    let world = TestEnv::without_answers();
    let mut client = world.client(json!({}));
    assert_eq!(
        result_of(&client.request("authenticate", json!({"methodId": "none"}))),
        &json!({})
    );
    assert_eq!(
        error_of(&client.request("authenticate", json!({"methodId": "other"}))),
        -32602
    );
    assert_eq!(error_of(&client.request("authenticate", json!({}))), -32602);
}

/// RPC-12: after a panic in a handler each request is still answered once.
// proves: RPC-12, RPC-13
#[test]
fn panic_in_handler_is_an_error_response() {
    struct PanickingProjects;
    impl Projects for PanickingProjects {
        fn settings(&self, roots: &[PathBuf]) -> Result<Settings, SettingsError> {
            assert!(!roots[0].ends_with("work"), "a fault of ours");
            Err(SettingsError("turnery.toml:3: no such key".to_owned()))
        }
    }
    let world = TestEnv::without_answers();
    let mut client = TestClient::connect(
        world.agent_with_projects(Arc::new(PanickingProjects)),
        ServeOptions::default(),
    );
    client.initialize(json!({}));
    let answer = client.request("session/new", world.new_session_params());
    assert_eq!(error_of(&answer), -32603);
    let params = json!({"cwd": world.root(), "mcpServers": []});
    let answer = client.request("session/new", params);
    assert_eq!(error_of(&answer), -32603);
    assert_eq!(answer["error"]["data"]["kind"], "settings");
    let details = &answer["error"]["data"]["details"];
    assert_eq!(details, "turnery.toml:3: no such key");
    probe(&mut client);
    assert_eq!(client.close_and_join().1, [] as [Value; 0]);
}
