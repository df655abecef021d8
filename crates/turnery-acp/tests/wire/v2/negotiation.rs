//! Version negotiation, and the order of requests.

use crate::harness::{TestClient, TestEnv, V2_VARIABLE, error_code_of, result_of};
use serde_json::{Value, json};
use std::{env, process::Command};

fn initialize(client: &mut TestClient, version: u64) -> Value {
    let info = json!({"name": "test", "version": "1"});
    client.request(
        "initialize",
        json!({"protocolVersion": version, "info": info}),
    )
}

// proves: V2-1
/// The agent selects the highest supported version not above the requested one; version 0 is an error after
/// which the client may try again.
#[test]
fn highest_version_not_above_requested_is_chosen() {
    for (asked, spoken) in [(1, 1), (2, 2), (3, 2), (65535, 2)] {
        let world = TestEnv::without_answers();
        let mut client = world.connect_v2();
        let answer = initialize(&mut client, asked);
        assert_eq!(result_of(&answer)["protocolVersion"], spoken, "{asked}");
    }
    let world = TestEnv::without_answers();
    let mut client = world.connect_v2();
    let answer = initialize(&mut client, 0);
    assert_eq!(error_code_of(&answer), -32022);
    assert_eq!(answer["error"]["data"]["requested"], 0);
    assert_eq!(answer["error"]["data"]["supported"], json!([1, 2]));
    // The connection remains usable for another attempt.
    let answer = initialize(&mut client, 2);
    assert_eq!(result_of(&answer)["protocolVersion"], 2);
}

// proves: V2-1, INIT-15
/// Without the option `v2`, a client that requests version 2 gets version 1; with it, a v1 client gets the
/// same `initialize` result and no v2 updates.
#[test]
fn v1_client_sees_nothing_of_v2() {
    let world = TestEnv::new(json!([{"steps": [{"text": "hello"}], "end": "stop"}]));
    let answer = initialize(&mut world.connect(), 2);
    assert_eq!(result_of(&answer)["protocolVersion"], 1);
    let mut client = world.connect_v2();
    let with = client.initialize(json!({}));
    let without = world.connect().initialize(json!({}));
    assert_eq!(with["result"], without["result"]);
    let made = client.request("session/new", world.new_session_params());
    assert!(result_of(&made)["modes"].is_object());
    let id = made["result"]["sessionId"].as_str().expect("an id");
    assert_eq!(client.prompt(id, "hi"), "end_turn");
    let (_, rest) = client.close_and_join();
    assert!(
        !rest
            .iter()
            .any(|line| line.to_string().contains("state_update"))
    );
}

// proves: V2-1
/// Runs all tests outside `v2` again with v2 enabled.
#[test]
fn v1_is_identical_with_v2_enabled() {
    let tests = env::current_exe().expect("a path");
    let run = Command::new(tests)
        .args(["--skip", "v2::"])
        .env(V2_VARIABLE, "1")
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}");
    for test in [
        "prompts::text_is_preserved_byte_for_byte",
        "permissions::call_waits_for_permission",
    ] {
        assert!(said.contains(&format!("test {test} ... ok")), "{said}");
    }
}

// proves: V2-2, INIT-15
/// `initialize` comes first, and may come again only before anything else.
#[test]
fn initialize_is_required_and_latest_wins() {
    let world = TestEnv::without_answers();
    let mut client = world.connect_v2();
    let early = client.request("session/new", json!({"cwd": world.cwd()}));
    assert_eq!(error_code_of(&early), -32600);
    client.initialize(json!({}));
    let answer = initialize(&mut client, 2);
    assert_eq!(result_of(&answer)["protocolVersion"], 2);
    let made = client.request("session/new", json!({"cwd": world.cwd()}));
    assert!(result_of(&made).get("modes").is_none());
    assert_eq!(error_code_of(&initialize(&mut client, 2)), -32600);
    // A connection fixed to v1 keeps it, whatever is requested later.
    let (mut client, _) = world.session();
    assert_eq!(initialize(&mut client, 2)["result"]["protocolVersion"], 1);
}

// proves: V2-18, V2-19
/// The advertised v2 capabilities are exactly the supported ones, and unsupported methods get `-32601`.
#[test]
fn unsupported_methods_are_unknown() {
    let world = TestEnv::without_answers();
    let (mut client, id) = world.session_v2();
    let mut other = world.connect_v2();
    let hello = other.initialize_v2();
    assert_eq!(
        result_of(&hello)["capabilities"],
        json!({
            "session": {
                "prompt": {"image": {}, "embeddedContext": {}},
                "mcp": {"stdio": {}, "http": {}},
                "delete": {},
                "additionalDirectories": {},
            },
            "_meta": {"turnery": {"queue": "_turnery/session/queue"}},
        })
    );
    assert!(
        hello["result"]
            .get("authMethods")
            .is_none_or(|it| it == &json!([]))
    );
    assert_eq!(hello["result"]["info"]["name"], "turnery");
    for method in [
        "auth/login",
        "auth/logout",
        "authenticate",
        "session/load",
        "session/fork",
        "session/set_mode",
        "tool_call/cancel",
        "terminal/cancel",
        "_turnery/session/steer",
        "nope/nope",
    ] {
        let answer = client.request(method, json!({"sessionId": id}));
        assert_eq!(error_code_of(&answer), -32601, "{method}");
    }
}
