//! Sessions: created, resumed, listed and configured.

use super::{is_idle, of_kind, states};
use crate::harness::{TestEnv, error_of, prompt_params, result_of};
use serde_json::{Value, json};

fn conversation_answers() -> Value {
    json!([
        {"steps": [{"thinking": "hm"}, {"text": "first"}, {"tool_call": {"name": "print", "args": {}}}]},
        {"steps": [{"text": "second"}]},
    ])
}

// proves: V2-10, V2-11
/// The conversation is replayed whole under the same ids, then the state, then the response.
#[test]
fn resume_replays_then_reports_state_then_responds() {
    let world = TestEnv::new(conversation_answers());
    let (mut client, id) = world.session_v2();
    let answer = client.request("session/prompt", prompt_params(&id, "hi"));
    let message_id = result_of(&answer)["messageId"].clone();
    client.wait_for(is_idle);
    let live = client.take_updates();
    let said = of_kind(&live, "agent_message_chunk");
    client.close_and_join();

    let mut client = world.client_v2();
    let params = json!({"sessionId": id, "cwd": world.cwd(), "replayFrom": {"type": "start"}});
    let asked = client.send_request("session/resume", params);
    let answer = client.wait_for_response(&asked);
    let result = result_of(&answer);
    assert!(result["configOptions"].is_array());
    assert!(result["availableCommands"].is_array());
    let replayed = client.take_updates();
    let last = replayed.last().expect("updates");
    assert_eq!(
        last,
        &json!({"sessionUpdate": "state_update", "state": "idle"})
    );
    assert_eq!(states(&replayed), ["idle"]);
    let user = of_kind(&replayed, "user_message");
    assert_eq!(user.len(), 1);
    assert_eq!(user[0]["messageId"], message_id);
    let agent = of_kind(&replayed, "agent_message");
    let texts: Vec<&Value> = agent.iter().map(|it| &it["content"][0]["text"]).collect();
    assert_eq!(texts, ["first", "second"]);
    assert_eq!(agent[0]["messageId"], said[0]["messageId"]);
    let thought = of_kind(&replayed, "agent_thought");
    assert_eq!(thought[0]["content"][0]["text"], "hm");
    let calls = of_kind(&replayed, "tool_call_update");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["status"], "completed");
    assert_eq!(calls[0]["title"], "Do print");
    assert!(of_kind(&replayed, "terminal_update").is_empty());
}

// proves: V2-10
/// Without a cursor nothing is replayed, but the state is reported; an unknown cursor is rejected, not
/// replaced.
#[test]
fn resume_replays_only_on_request() {
    let world = TestEnv::new(conversation_answers());
    let (mut client, id) = world.session_v2();
    client.request("session/prompt", prompt_params(&id, "hi"));
    client.wait_for(is_idle);
    client.close_and_join();
    let mut client = world.client_v2();
    for cursor in [
        json!({"type": "message", "messageId": "x"}),
        json!({"type": "_mark"}),
        json!({}),
        json!("start"),
        json!(7),
    ] {
        let params = json!({"sessionId": id, "cwd": world.cwd(), "replayFrom": cursor});
        let answer = client.request("session/resume", params);
        assert_eq!(error_of(&answer), -32602, "{cursor}");
    }
    for none in [json!({}), json!({"replayFrom": null})] {
        let mut params = none;
        params["sessionId"] = json!(id);
        params["cwd"] = json!(world.cwd());
        let answer = client.request("session/resume", params);
        result_of(&answer);
        let told = client.take_updates();
        assert_eq!(
            told,
            [json!({"sessionUpdate": "state_update", "state": "idle"})]
        );
    }
    // A resumed session works.
    let answer = client.request("session/prompt", prompt_params(&id, "/help"));
    assert!(result_of(&answer)["messageId"].is_string());
    let nobody = json!({"sessionId": "nobody", "cwd": world.cwd()});
    let answer = client.request("session/resume", nobody);
    assert_eq!(error_of(&answer), -32002);
    assert_eq!(answer["error"]["data"]["sessionId"], "nobody");
}

// proves: V2-21, V2-22
/// Options have distinct values that include the current one; commands have a type and a name that can be
/// typed. Both are always lists.
#[test]
fn options_and_commands_are_complete_lists() {
    let world = TestEnv::without_answers();
    let mut client = world.client_v2();
    let made = client.request("session/new", json!({"cwd": world.cwd()}));
    let result = result_of(&made);
    let options = result["configOptions"].as_array().expect("a list");
    let ids: Vec<&Value> = options.iter().map(|option| &option["configId"]).collect();
    assert_eq!(ids, ["mode", "model", "thinking"]);
    for option in options {
        assert_eq!(option["type"], "select");
        let values = option["options"].as_array().expect("a list");
        let mut values: Vec<&str> = values
            .iter()
            .map(|value| value["value"].as_str().expect("a value"))
            .collect();
        let current = option["currentValue"].as_str().expect("a value");
        assert!(values.contains(&current), "{option}");
        let all = values.len();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), all, "{option}");
    }
    let commands = result["availableCommands"].as_array().expect("a list");
    let mut names: Vec<&str> = commands
        .iter()
        .map(|command| {
            assert_eq!(command["type"], "command");
            command["name"].as_str().expect("a name")
        })
        .collect();
    assert!(names.contains(&"compact"));
    assert!(!names.iter().any(|name| name.contains(['/', ' '])));
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
    assert_eq!(client.take_command_offers(), [] as [Value; 0]);
}

// proves: V2-18, V2-20, V2-22
/// An option is set by a value of the declared type; anything else is rejected and changes nothing.
#[test]
fn options_are_set_by_their_type() {
    let world = TestEnv::without_answers();
    let (mut client, id) = world.session_v2();
    let set = |config: &str, kind: Value, value: Value| json!({"sessionId": id, "configId": config, "type": kind, "value": value});
    let answer = client.request(
        "session/set_config_option",
        set("mode", json!("id"), json!("plan")),
    );
    let options = result_of(&answer)["configOptions"].clone();
    assert_eq!(options[0]["currentValue"], "plan");
    for wrong in [
        set("mode", json!("id"), json!("nonsense")),
        set("mode", json!("id"), json!(7)),
        set("mode", json!("boolean"), json!(true)),
        set("mode", json!("_dial"), json!(7)),
        set("nonsense", json!("id"), json!("plan")),
        json!({"sessionId": id, "configId": "mode", "value": "ask"}),
    ] {
        let answer = client.request("session/set_config_option", wrong.clone());
        assert_eq!(error_of(&answer), -32602, "{wrong}");
    }
    let answer = client.request(
        "session/set_config_option",
        set("thinking", json!("id"), json!("high")),
    );
    assert_eq!(
        result_of(&answer)["configOptions"][0]["currentValue"],
        "plan"
    );
    assert_eq!(client.close_and_join().1, [] as [Value; 0]);
}

// proves: V2-18
/// An unsupported transport, folder or cursor is rejected.
#[test]
fn unsupported_params_are_rejected() {
    let world = TestEnv::without_answers();
    let mut client = world.client_v2();
    let cwd = world.cwd();
    let server = |server: Value| json!({"cwd": cwd, "mcpServers": [server]});
    for params in [
        server(json!({"type": "_pigeon", "name": "a"})),
        server(json!({"type": "sse", "name": "a", "url": "http://localhost", "headers": []})),
        server(json!({"type": "stdio", "name": "a", "command": "relative", "args": [], "env": []})),
        server(json!({"type": "stdio", "name": "a"})),
        json!({"cwd": "."}),
        json!({"cwd": cwd, "additionalDirectories": ["x"]}),
        json!({}),
    ] {
        let answer = client.request("session/new", params.clone());
        assert_eq!(error_of(&answer), -32602, "{params}");
    }
    for cursor in ["", "nonsense"] {
        let answer = client.request("session/list", json!({"cursor": cursor}));
        assert_eq!(error_of(&answer), -32602, "{cursor:?}");
    }
    let list = client.request("session/list", json!({}));
    assert_eq!(result_of(&list), &json!({"sessions": []}));
}
