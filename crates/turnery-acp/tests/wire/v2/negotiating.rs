//! Which version is spoken, and what comes first.

use crate::harness::{Client, WITH_V2, World, error_of, prompt, result_of};
use serde_json::{Value, json};
use std::{env, process::Command};

fn initialize(client: &mut Client, version: u64) -> Value {
    let info = json!({"name": "test", "version": "1"});
    client.call(
        "initialize",
        json!({"protocolVersion": version, "info": info}),
    )
}

// proves: V2-1
/// The highest version at or below the one that is asked for.
#[test]
fn the_highest_version_at_or_below_is_spoken() {
    for (asked, spoken) in [(1, 1), (2, 2), (3, 2), (65535, 2)] {
        let world = World::silent();
        let mut client = world.connect_v2();
        let answer = initialize(&mut client, asked);
        assert_eq!(result_of(&answer)["protocolVersion"], spoken, "{asked}");
    }
    let world = World::silent();
    let mut client = world.connect_v2();
    let answer = initialize(&mut client, 0);
    assert_eq!(error_of(&answer), -32022);
    assert_eq!(answer["error"]["data"]["requested"], 0);
    assert_eq!(answer["error"]["data"]["supported"], json!([1, 2]));
    // The connection is good for another try.
    let answer = initialize(&mut client, 2);
    assert_eq!(result_of(&answer)["protocolVersion"], 2);
}

// proves: V2-1
/// Of a request newer than what is spoken only the number is read; one of this version is
/// read strictly.
#[test]
fn what_a_later_version_says_need_not_parse() {
    let later = json!({"protocolVersion": 3, "info": "none", "capabilities": 7});
    let world = World::silent();
    let answer = world.connect_v2().call("initialize", later);
    assert_eq!(result_of(&answer)["protocolVersion"], 2);
    for wrong in [
        json!({"protocolVersion": 2}),
        json!({"protocolVersion": 2, "info": "none"}),
        json!({"protocolVersion": "2", "info": {"name": "a", "version": "1"}}),
    ] {
        let answer = world.connect_v2().call("initialize", wrong);
        assert_eq!(error_of(&answer), -32602);
    }
}

// proves: V2-1, INIT-15
/// Without the switch, nobody gets v2; with it, a v1 client gets v1 to the last byte.
#[test]
fn a_client_of_the_first_version_sees_nothing_of_the_second() {
    let world = World::new(json!([{"steps": [{"text": "hello"}], "end": "stop"}]));
    let answer = initialize(&mut world.connect(), 2);
    assert_eq!(result_of(&answer)["protocolVersion"], 1);
    let mut client = world.connect_v2();
    let with = client.initialize(json!({}));
    let without = world.connect().initialize(json!({}));
    assert_eq!(with["result"], without["result"]);
    let made = client.call("session/new", world.new_session());
    assert!(result_of(&made)["modes"].is_object());
    let id = made["result"]["sessionId"].as_str().expect("an id");
    let answer = client.call("session/prompt", prompt(id, "hi"));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    let (_, rest) = client.leave();
    assert!(
        !rest
            .iter()
            .any(|line| line.to_string().contains("state_update"))
    );
}

// proves: V2-1
/// All tests of the first version, once more with the second one switched on: all but those that are about
/// which version is chosen, and one about the harness.
#[test]
fn the_first_version_is_the_same_with_the_switch_on() {
    let tests = env::current_exe().expect("a path");
    let others = [
        "v2::",
        "rpc::initialize_negotiates",
        "kit::a_version_of_the_far_future_gets_ours",
        "kit::silence_is_really_listened_to",
    ];
    let run = Command::new(tests)
        .args(others.iter().flat_map(|test| ["--skip", test]))
        .env(WITH_V2, "1")
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}");
    for test in [
        "prompts::text_survives_as_it_was",
        "tools::always_is_remembered",
    ] {
        assert!(said.contains(&format!("test {test} ... ok")), "{said}");
    }
}

// proves: V2-2, INIT-15
/// `initialize` comes first, and may come again only before anything else.
#[test]
fn initialize_comes_first_and_the_latest_wins() {
    let world = World::silent();
    let mut client = world.connect_v2();
    let early = client.call("session/new", json!({"cwd": world.cwd()}));
    assert_eq!(error_of(&early), -32600);
    client.initialize(json!({}));
    let answer = initialize(&mut client, 2);
    assert_eq!(result_of(&answer)["protocolVersion"], 2);
    let made = client.call("session/new", json!({"cwd": world.cwd()}));
    assert!(result_of(&made).get("modes").is_none());
    assert_eq!(error_of(&initialize(&mut client, 2)), -32600);
    // One that stayed with the first version keeps it, whatever it asks for later.
    let (mut client, _) = world.session();
    assert_eq!(initialize(&mut client, 2)["result"]["protocolVersion"], 1);
}

// proves: V2-3
/// An id is an integer or a string.
#[test]
fn a_request_without_an_id_of_its_own_is_refused() {
    let world = World::silent();
    let mut client = world.client_v2();
    client.raw("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"session/list\"}\n");
    let answer = client.answer(&Value::Null);
    assert_eq!(error_of(&answer), -32600);
    for id in [json!(-9_223_372_036_854_775_808_i64), json!("")] {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "session/list"});
        client.send(&request);
        assert_eq!(result_of(&client.answer(&id))["sessions"], json!([]));
    }
}

// proves: V2-18, V2-19
/// Capabilities are objects, only what works is there, and what is not there is no
/// method.
#[test]
fn what_is_not_advertised_is_no_method() {
    let world = World::silent();
    let (mut client, id) = world.session_v2();
    let mut other = world.connect_v2();
    let hello = other.initialize_v2();
    assert_eq!(
        result_of(&hello)["capabilities"],
        json!({"session": {
            "prompt": {"image": {}, "embeddedContext": {}},
            "mcp": {"stdio": {}, "http": {}},
            "delete": {},
            "additionalDirectories": {},
        }})
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
        let answer = client.call(method, json!({"sessionId": id}));
        assert_eq!(error_of(&answer), -32601, "{method}");
    }
}
