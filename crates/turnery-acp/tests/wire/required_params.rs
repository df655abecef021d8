//! Parameters of each method: required ones are required, optional ones optional, and `_meta` may be anything
//! (RPC-10, RPC-11, EXT-2).

use crate::harness::{TestClient, TestEnv, error_code_of, result_of};
use serde_json::{Value, json};

/// Returns stable methods with valid parameters, and the names of the required ones.
fn methods(world: &TestEnv, id: &str) -> Vec<(&'static str, Value, &'static [&'static str])> {
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

fn greeting_env() -> TestEnv {
    TestEnv::new(json!([{"when": {"last_user_contains": "hi"}, "steps": [{"text": "hello"}]}]))
}

// proves: RPC-10, C-8, UP-39
#[test]
fn each_required_parameter_is_required() {
    let world = greeting_env();
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
                let answer = client.request(method, params.clone());
                assert_eq!(error_code_of(&answer), -32602, "{method}: {params}");
            }
        }
        if !required.is_empty() {
            for params in [json!([]), json!({})] {
                let answer = client.request(method, params.clone());
                assert_eq!(error_code_of(&answer), -32602, "{method}: {params}");
            }
        }
        result_of(&client.request(method, params));
    }
}

fn meta_values() -> [Value; 6] {
    [
        json!(42),
        json!("text"),
        json!([1, {}]),
        Value::Null,
        json!({"traceparent": 7, "tracestate": {}, "turnery": []}),
        json!({"a": {"b": [null, 1e300]}, "": ""}),
    ]
}

/// Inserts `meta` into every object, from the inside out.
fn insert_meta(value: &mut Value, meta: &Value) {
    match value {
        Value::Object(members) => {
            members
                .values_mut()
                .for_each(|member| insert_meta(member, meta));
            members.insert("_meta".to_owned(), meta.clone());
        }
        Value::Array(items) => items.iter_mut().for_each(|item| insert_meta(item, meta)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

// proves: EXT-2
#[test]
fn any_meta_is_accepted_in_requests() {
    let world = greeting_env();
    for meta in meta_values() {
        let mut client = world.connect();
        let mut hello = json!({
            "protocolVersion": 1,
            "clientInfo": {"name": "a", "version": "1"},
            "clientCapabilities": {"fs": {}, "session": {"notices": {}}, "auth": {}},
        });
        insert_meta(&mut hello, &meta);
        result_of(&client.request("initialize", hello));
        let id = client.new_session(world.new_session_params());
        for (method, mut params, _) in methods(&world, &id) {
            insert_meta(&mut params, &meta);
            result_of(&client.request(method, params));
        }
        prompt_with_annotated_blocks(&mut client, &id, &meta);
        client.send_notification("session/cancel", json!({"sessionId": id, "_meta": meta}));
        result_of(&client.request("session/list", json!({})));
    }
}

/// Prompts with a text, a link and an embedded resource, all with annotations and with `meta` in every
/// object.
fn prompt_with_annotated_blocks(client: &mut TestClient, id: &str, meta: &Value) {
    let notes = json!({"audience": ["user"], "priority": 0.5});
    let mut params = json!({"sessionId": id, "prompt": [
        {"type": "text", "text": "hi", "annotations": notes},
        {"type": "resource_link", "uri": "file:///w/a", "name": "a", "annotations": notes},
        {"type": "resource", "resource": {"uri": "file:///w/a", "text": "hi"}, "annotations": notes},
    ]});
    insert_meta(&mut params, meta);
    let answer = client.request("session/prompt", params);
    assert_eq!(result_of(&answer)["stopReason"], "end_turn", "{meta}");
}

/// An approval with any `_meta` in each of its objects is still an approval.
// proves: EXT-2
#[test]
fn any_meta_is_accepted_in_responses() {
    for meta in meta_values() {
        let world = TestEnv::new(json!([
            {"steps": [{"tool_call": {"name": "change", "args": {}}}]},
            {"steps": [{"text": "done"}]},
        ]));
        let (mut client, id) = world.session();
        let params = json!({"sessionId": id, "prompt": [{"type": "text", "text": "hi"}]});
        let asked = client.send_request("session/prompt", params);
        let question = client.wait_for_request("session/request_permission");
        let mut yes = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
        insert_meta(&mut yes, &meta);
        client.respond(&question, yes);
        assert_eq!(client.wait_for_stop_reason(&asked), "end_turn");
        assert_eq!(world.run_log.all(), ["change"], "{meta}");
    }
}
