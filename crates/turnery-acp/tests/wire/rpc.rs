//! Connection basics over real pipes: line limit, `initialize` first, advertised capabilities, and panics in
//! handlers (TR-9, RPC-12, INIT-6, INIT-11, INIT-12).

use crate::harness::{TestClient, TestEnv, error_code_of, result_of};
use serde_json::{Value, json};
use std::{path::PathBuf, sync::Arc};
use tokio_util::sync::CancellationToken;
use turnery_acp::ServeOptions;
use turnery_agent::{Settings, SettingsError, SettingsResolver};

fn probe(client: &mut TestClient) {
    let answer = client.initialize(json!({}));
    assert_eq!(result_of(&answer)["protocolVersion"], 1);
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
    assert_eq!(
        (error_code_of(&refused), &refused["id"]),
        (-32600, &Value::Null)
    );
    assert_eq!(refused["error"]["data"]["limit"], 64 << 20);
    probe(&mut client);
}

// proves: UP-39, RPC-12
#[test]
fn unknown_method_is_named_as_such() {
    let world = TestEnv::without_answers();
    let mut client = world.connect();
    client.initialize(json!({}));
    for method in ["nope", "session/nope", "_nope"] {
        let answer = client.request(method, json!({}));
        assert_eq!(error_code_of(&answer), -32601, "{method}");
    }
    probe(&mut client);
}

#[test]
fn first_response_lets_later_work_begin() {
    let world = TestEnv::without_answers();
    let first_response = CancellationToken::new();
    let options = ServeOptions {
        first_response: first_response.clone(),
        ..ServeOptions::default()
    };
    let mut client = TestClient::connect(world.agent(), options);
    client.write_raw("nonsense\n");
    let refused = client.next_message().expect("an answer");
    assert_eq!(error_code_of(&refused), -32700);
    assert!(!first_response.is_cancelled());
    probe(&mut client);
    // Written after the first response, and everything that waited for it.
    probe(&mut client);
    assert!(first_response.is_cancelled());
}

/// INIT-12: every other request before `initialize` is rejected, and a later `initialize` still succeeds.
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
        assert_eq!(error_code_of(&answer), -32600, "{method}");
    }
    let failed = client.request("initialize", json!({}));
    assert_eq!(error_code_of(&failed), -32602);
    let answer = client.request("session/prompt", json!({}));
    let code = error_code_of(&answer);
    assert_eq!(code, -32600, "a failed initialize initializes nothing");
    probe(&mut client);
}

/// The `initialize` result contains exactly the supported capabilities, one login method and the agent info
/// (INIT-6, INIT-11, AUTH-1, AUTH-3, AUTH-11).
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
                "outputSchema": true,
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

/// RPC-12: after a panic in a handler each request is still answered once.
// proves: RPC-12, RPC-13
#[test]
fn panic_in_handler_is_an_error_response() {
    struct PanickingSettings;
    impl SettingsResolver for PanickingSettings {
        fn settings(&self, roots: &[PathBuf]) -> Result<Settings, SettingsError> {
            assert!(!roots[0].ends_with("work"), "a fault of ours");
            Err(SettingsError("turnery.toml:3: no such key".to_owned()))
        }
    }
    let world = TestEnv::without_answers();
    let mut client =
        TestClient::initialized(world.agent_with_settings(Arc::new(PanickingSettings)));
    let answer = client.request("session/new", world.new_session_params());
    assert_eq!(error_code_of(&answer), -32603);
    let params = json!({"cwd": world.root(), "mcpServers": []});
    let answer = client.request("session/new", params);
    assert_eq!(error_code_of(&answer), -32603);
    assert_eq!(answer["error"]["data"]["kind"], "settings");
    let details = &answer["error"]["data"]["details"];
    assert_eq!(details, "turnery.toml:3: no such key");
    probe(&mut client);
    assert_eq!(client.close_and_join().1, [] as [Value; 0]);
}
