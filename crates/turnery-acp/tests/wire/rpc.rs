//! Transport and JSON-RPC (TR-1 to TR-11, RPC-1 to RPC-22), over real pipes.

use crate::harness::{Client, World, error_of, result_of};
use serde_json::{Value, json};
use std::{path::PathBuf, sync::Arc};
use turnery_acp::ServeOptions;
use turnery_agent::{Projects, Settings, SettingsError};

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;

/// The client's next answer has this code and this id.
fn expect_error(client: &mut Client, code: i64, id: &Value) {
    let answer = client.next().expect("an answer");
    assert_eq!((error_of(&answer), &answer["id"]), (code, id), "{answer}");
}

fn probe(client: &mut Client) {
    let answer = client.initialize(json!({}));
    assert_eq!(result_of(&answer)["protocolVersion"], 1);
}

/// RPC-2: byte for byte, which JSON values cannot show.
// proves: RPC-1, RPC-2, RPC-4
#[test]
fn ids_come_back_as_they_were() {
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
            let world = World::silent();
            let mut client = world.connect();
            client.raw(format!("{INITIALIZE}\n"));
            client.raw(format!(
                "{{\"method\":\"{method}\",\"params\":{{\"protocolVersion\":1}},\"id\":{id},\"jsonrpc\":\"2.0\"}}\n"
            ));
            let lines = client.raw_lines();
            let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{expected}\":{{");
            assert!(lines[1].starts_with(&head), "{}", lines[1]);
            assert_eq!(lines.len(), 2);
        }
    }
}

/// RPC-3, RPC-6, RPC-7, RPC-8: one error each, and the connection lives.
// proves: UP-39, RPC-3, RPC-6, RPC-7, RPC-8, RPC-13, G-25
#[test]
fn malformed_lines_are_answered_once_and_nothing_breaks() {
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
    let world = World::silent();
    let mut client = world.connect();
    for (line, code) in table {
        client.raw(line);
        client.raw("\n");
        expect_error(&mut client, code, &Value::Null);
    }
    probe(&mut client);
    assert_eq!(client.leave().1, [] as [Value; 0]);
}

/// RPC-5, RPC-17, RPC-20, CANCEL-1, CANCEL-8, REQC-4: silence.
// proves: ACP-47, RPC-5, RPC-7, RPC-17, RPC-20, CANCEL-1, CANCEL-8, REQC-4, EXT-4
#[test]
fn what_wants_no_answer_gets_none() {
    let world = World::silent();
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
        client.raw(line);
        client.raw("\n");
    }
    probe(&mut client);
    assert_eq!(client.leave().1, [] as [Value; 0]);
}

/// TR-10, TR-1.
// proves: TR-1, TR-10
#[test]
fn line_ends_of_all_sorts_and_bytes_in_pieces() {
    let world = World::silent();
    let mut client = world.connect();
    client.raw(format!("\n\r\n  \n{INITIALIZE}\r\n\n"));
    let unicode = r#"{"jsonrpc":"2.0","id":"é☃𝄞","method":"nope"}"#;
    for byte in unicode.as_bytes() {
        client.raw([*byte]);
    }
    client.close();
    let lines = client.raw_lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("\"id\":1,\"result\""), "{}", lines[0]);
    assert!(
        lines[1].contains("\"id\":\"é☃𝄞\",\"error\""),
        "{}",
        lines[1]
    );
}

/// TR-9: a line of 33 MiB is read, one of more than 64 MiB is refused by name, and both leave the
/// connection usable.
// proves: TR-9, G-14
#[test]
fn lines_may_be_large_but_not_endless() {
    let world = World::silent();
    let mut client = world.client(json!({}));
    let junk = "x".repeat(33 << 20);
    let params = json!({"protocolVersion": 1, "_meta": {"junk": junk}});
    assert_eq!(
        result_of(&client.call("initialize", params))["protocolVersion"],
        1
    );
    client.raw("y".repeat(65 << 20));
    client.raw("\n");
    let refused = client.next().expect("an answer");
    assert_eq!((error_of(&refused), &refused["id"]), (-32600, &Value::Null));
    assert_eq!(refused["error"]["data"]["limit"], 64 << 20);
    probe(&mut client);
}

/// RPC-9, EXT-4.
// proves: UP-39, RPC-9, EXT-4, G-26
#[test]
fn methods_that_are_not_there() {
    let world = World::silent();
    let mut client = world.client(json!({}));
    for method in [
        "nope/nope",
        "session/set_model",
        "session/freeze",
        "_x/y",
        "providers/list",
        "",
    ] {
        let answer = client.call(method, json!({}));
        assert_eq!(error_of(&answer), -32601, "{method}");
    }
}

/// INIT-12: by a request of every sort, and then it works.
// proves: ACP-2, INIT-12
#[test]
fn initialize_comes_first() {
    let world = World::silent();
    let mut client = world.connect();
    for method in [
        "session/new",
        "session/list",
        "authenticate",
        "session/prompt",
        "nope",
    ] {
        let answer = client.call(method, json!({}));
        assert_eq!(error_of(&answer), -32600, "{method}");
    }
    probe(&mut client);
}

/// INIT-1 to INIT-6, INIT-9, INIT-13.
// proves: INIT-1, INIT-2, INIT-3, INIT-5, INIT-9, INIT-13, G-13
#[test]
fn initialize_negotiates() {
    let world = World::silent();
    let mut client = world.connect();
    for params in [
        json!({"protocolVersion": 1}),
        json!({"protocolVersion": 0}),
        json!({"protocolVersion": 2}),
        json!({"protocolVersion": 3}),
        json!({"protocolVersion": 65535}),
        json!({"protocolVersion": 2, "info": "bad", "capabilities": []}),
        json!({"protocolVersion": 1, "clientCapabilities": false, "clientInfo": 7}),
        json!({"protocolVersion": 1, "clientCapabilities": null, "_meta": 42}),
        json!({"protocolVersion": 1, "clientCapabilities":
            {"fs": "yes", "terminal": "no", "session": {"notices": true}, "unknown": {}}}),
    ] {
        let answer = client.call("initialize", params.clone());
        assert_eq!(result_of(&answer)["protocolVersion"], 1, "{params}");
    }
    for params in [
        json!({}),
        json!({"protocolVersion": "1"}),
        json!({"protocolVersion": "2025-01-01"}),
        json!({"protocolVersion": -1}),
        json!({"protocolVersion": 1.5}),
        json!({"protocolVersion": 65536}),
        json!({"protocolVersion": null}),
        json!([1]),
    ] {
        let answer = client.call("initialize", params.clone());
        assert_eq!(error_of(&answer), -32602, "{params}");
    }
}

/// INIT-6, INIT-11, AUTH-1, AUTH-3, AUTH-11.
// proves: INIT-6, INIT-11, RPC-21, EXT-1, EXT-5
#[test]
fn only_what_works_is_advertised() {
    let world = World::silent();
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
            "name": "Keys that are there already",
            "description": "From the environment, the configuration or turnery login; without any the offline model answers",
        }],
        "agentInfo": {"name": "turnery", "title": "turnery", "version": env!("CARGO_PKG_VERSION")},
    });
    assert_eq!(result_of(&answer), &expected);
}

/// AUTH-4, AUTH-5.
#[test]
fn the_login_that_needs_nothing() {
    let world = World::silent();
    let mut client = world.client(json!({}));
    assert_eq!(
        result_of(&client.call("authenticate", json!({"methodId": "none"}))),
        &json!({})
    );
    assert_eq!(
        error_of(&client.call("authenticate", json!({"methodId": "other"}))),
        -32602
    );
    assert_eq!(error_of(&client.call("authenticate", json!({}))), -32602);
}

/// RPC-12: whatever breaks inside, each request is answered once, and the next ones as well.
// proves: RPC-12, RPC-13
#[test]
fn what_breaks_inside_is_an_answer() {
    struct Broken;
    impl Projects for Broken {
        fn settings(&self, roots: &[PathBuf]) -> Result<Settings, SettingsError> {
            assert!(!roots[0].ends_with("work"), "a fault of ours");
            Err(SettingsError("turnery.toml:3: no such key".to_owned()))
        }
    }
    let world = World::silent();
    let mut client = Client::connect(world.agent_of(Arc::new(Broken)), ServeOptions::default());
    client.initialize(json!({}));
    let answer = client.call("session/new", world.new_session());
    assert_eq!(error_of(&answer), -32603);
    let params = json!({"cwd": world.outside(), "mcpServers": []});
    let answer = client.call("session/new", params);
    assert_eq!(error_of(&answer), -32603);
    assert_eq!(answer["error"]["data"]["kind"], "settings");
    let details = &answer["error"]["data"]["details"];
    assert_eq!(details, "turnery.toml:3: no such key");
    probe(&mut client);
    assert_eq!(client.leave().1, [] as [Value; 0]);
}
