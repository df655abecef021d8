//! Parameters, method by method: each that is required is required, none need be there where none is, and
//! `_meta` may be anything anywhere (RPC-10, RPC-11, EXT-2).

use crate::harness::{Client, World, error_of, result_of};
use serde_json::{Value, json};

/// Each method with parameters that fit, and those of them that must be there.
fn methods(world: &World, id: &str) -> Vec<(&'static str, Value, &'static [&'static str])> {
    let cwd = world.cwd();
    let text = json!([{"type": "text", "text": "hi"}]);
    vec![
        (
            "initialize",
            json!({"protocolVersion": 1}),
            &["protocolVersion"],
        ),
        ("authenticate", json!({"methodId": "none"}), &["methodId"]),
        (
            "session/new",
            json!({"cwd": cwd, "mcpServers": []}),
            &["cwd", "mcpServers"],
        ),
        (
            "session/load",
            json!({"sessionId": id, "cwd": cwd, "mcpServers": []}),
            &["sessionId", "cwd", "mcpServers"],
        ),
        (
            "session/resume",
            json!({"sessionId": id, "cwd": cwd}),
            &["sessionId", "cwd"],
        ),
        (
            "session/fork",
            json!({"sessionId": id, "cwd": cwd}),
            &["sessionId", "cwd"],
        ),
        ("session/list", json!({}), &[]),
        (
            "session/set_mode",
            json!({"sessionId": id, "modeId": "plan"}),
            &["sessionId", "modeId"],
        ),
        (
            "session/set_config_option",
            json!({"sessionId": id, "configId": "mode", "value": "ask"}),
            &["sessionId", "configId", "value"],
        ),
        (
            "session/prompt",
            json!({"sessionId": id, "prompt": text}),
            &["sessionId", "prompt"],
        ),
        (
            "session/close",
            json!({"sessionId": "bogus"}),
            &["sessionId"],
        ),
        (
            "session/delete",
            json!({"sessionId": "bogus"}),
            &["sessionId"],
        ),
    ]
}

fn talkative() -> World {
    World::new(json!([{"when": {"last_user_contains": "hi"}, "steps": [{"text": "hello"}]}]))
}

// proves: RPC-10
#[test]
fn each_required_parameter_is_required() {
    let world = talkative();
    let (mut client, id) = world.session();
    for (method, params, required) in methods(&world, &id) {
        for name in required {
            let mut without = params.clone();
            without.as_object_mut().expect("an object").remove(*name);
            let mut wrong = vec![without];
            for value in [json!(true), json!({}), json!(-7.5)] {
                let mut other = params.clone();
                other[*name] = value;
                wrong.push(other);
            }
            for params in wrong {
                let answer = client.call(method, params.clone());
                assert_eq!(error_of(&answer), -32602, "{method}: {params}");
            }
        }
        if !required.is_empty() {
            for params in [json!([]), json!({})] {
                let answer = client.call(method, params.clone());
                assert_eq!(error_of(&answer), -32602, "{method}: {params}");
            }
        }
        result_of(&client.call(method, params));
    }
}

// proves: RPC-11
#[test]
fn no_parameters_are_absent_null_or_empty() {
    let world = World::silent();
    let (mut client, _) = world.session();
    for method in ["session/list", "logout"] {
        let requests = [
            json!({"jsonrpc": "2.0", "id": "absent", "method": method}),
            json!({"jsonrpc": "2.0", "id": "null", "method": method, "params": null}),
            json!({"jsonrpc": "2.0", "id": "empty", "method": method, "params": {}}),
        ];
        let answers = requests.map(|request| {
            client.send(&request);
            result_of(&client.answer(&request["id"])).clone()
        });
        assert_eq!(answers[0], answers[1], "{method}");
        assert_eq!(answers[0], answers[2], "{method}");
    }
}

fn junk() -> [Value; 6] {
    [
        json!(42),
        json!("text"),
        json!([1, {}]),
        Value::Null,
        json!({"traceparent": 7, "tracestate": {}, "turnery": []}),
        json!({"a": {"b": [null, 1e300]}, "": ""}),
    ]
}

/// Put the same into every object there is, from the inside out.
fn put(value: &mut Value, meta: &Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(|member| put(member, meta));
            members.insert("_meta".to_owned(), meta.clone());
        }
        Value::Array(items) => items.iter_mut().for_each(|item| put(item, meta)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

// proves: EXT-2
#[test]
fn meta_may_be_anything_anywhere() {
    let world = talkative();
    for meta in junk() {
        let mut client = world.connect();
        let mut hello = json!({
            "protocolVersion": 1,
            "clientInfo": {"name": "a", "version": "1"},
            "clientCapabilities": {"fs": {}, "session": {"notices": {}}, "auth": {}},
        });
        put(&mut hello, &meta);
        result_of(&client.call("initialize", hello));
        let made = client.call("session/new", world.new_session());
        let id = result_of(&made)["sessionId"]
            .as_str()
            .expect("an id")
            .to_owned();
        for (method, mut params, _) in methods(&world, &id) {
            put(&mut params, &meta);
            result_of(&client.call(method, params));
        }
        rich(&mut client, &id, &meta);
        client.tell("session/cancel", json!({"sessionId": id, "_meta": meta}));
        result_of(&client.call("session/list", json!({})));
    }
}

/// Blocks of each sort, with all that may be in them.
fn rich(client: &mut Client, id: &str, meta: &Value) {
    let notes = json!({"audience": ["user"], "priority": 0.5});
    let mut params = json!({"sessionId": id, "prompt": [
        {"type": "text", "text": "hi", "annotations": notes},
        {"type": "resource_link", "uri": "file:///w/a", "name": "a", "annotations": notes},
        {"type": "resource", "resource": {"uri": "file:///w/a", "text": "hi"}, "annotations": notes},
    ]});
    put(&mut params, meta);
    let answer = client.call("session/prompt", params);
    assert_eq!(result_of(&answer)["stopReason"], "end_turn", "{meta}");
}

/// Answers of the client as well: a yes with junk beside it is still a yes.
// proves: EXT-2
#[test]
fn meta_may_be_anything_in_an_answer() {
    for meta in junk() {
        let world = World::new(json!([
            {"steps": [{"tool_call": {"name": "change", "args": {}}}]},
            {"steps": [{"text": "done"}]},
        ]));
        let (mut client, id) = world.session();
        let params = json!({"sessionId": id, "prompt": [{"type": "text", "text": "hi"}]});
        let asked = client.ask("session/prompt", params);
        let question = client.asked("session/request_permission");
        let mut yes = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
        put(&mut yes, &meta);
        client.reply(&question, yes);
        assert_eq!(result_of(&client.answer(&asked))["stopReason"], "end_turn");
        assert_eq!(world.ran.all(), ["change"], "{meta}");
    }
}
