//! Sessions: made, resumed, listed and set.

use super::{is_idle, of_kind, states};
use crate::harness::{World, error_of, prompt, result_of};
use serde_json::{Value, json};

fn story() -> Value {
    json!([
        {"steps": [{"thinking": "hm"}, {"text": "first"}, {"tool_call": {"name": "print", "args": {}}}]},
        {"steps": [{"text": "second"}]},
    ])
}

// proves: V2-10, V2-11
/// What was said comes again under the same ids, whole, then the state, then the
/// answer.
#[test]
fn a_resume_replays_then_tells_the_state_then_answers() {
    let world = World::new(story());
    let (mut client, id) = world.session_v2();
    let answer = client.call("session/prompt", prompt(&id, "hi"));
    let message_id = result_of(&answer)["messageId"].clone();
    client.wait(is_idle);
    let live = client.updates();
    let said = of_kind(&live, "agent_message_chunk");
    client.leave();

    let mut client = world.client_v2();
    let params = json!({"sessionId": id, "cwd": world.cwd(), "replayFrom": {"type": "start"}});
    let asked = client.ask("session/resume", params);
    let answer = client.answer(&asked);
    let result = result_of(&answer);
    assert!(result["configOptions"].is_array());
    assert!(result["availableCommands"].is_array());
    let replayed = client.updates();
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
/// Without a place to replay from nothing is replayed, and the state is told all the same;
/// a place that nobody knows is refused, not exchanged.
#[test]
fn a_resume_replays_only_what_is_asked_for() {
    let world = World::new(story());
    let (mut client, id) = world.session_v2();
    client.call("session/prompt", prompt(&id, "hi"));
    client.wait(is_idle);
    client.leave();
    let mut client = world.client_v2();
    for cursor in [
        json!({"type": "message", "messageId": "x"}),
        json!({"type": "_mark"}),
        json!({}),
        json!("start"),
        json!(7),
    ] {
        let params = json!({"sessionId": id, "cwd": world.cwd(), "replayFrom": cursor});
        let answer = client.call("session/resume", params);
        assert_eq!(error_of(&answer), -32602, "{cursor}");
    }
    for none in [json!({}), json!({"replayFrom": null})] {
        let mut params = none;
        params["sessionId"] = json!(id);
        params["cwd"] = json!(world.cwd());
        let answer = client.call("session/resume", params);
        result_of(&answer);
        let told = client.updates();
        assert_eq!(
            told,
            [json!({"sessionUpdate": "state_update", "state": "idle"})]
        );
    }
    // A session that was resumed works.
    let answer = client.call("session/prompt", prompt(&id, "/help"));
    assert!(result_of(&answer)["messageId"].is_string());
    let nobody = json!({"sessionId": "nobody", "cwd": world.cwd()});
    let answer = client.call("session/resume", nobody);
    assert_eq!(error_of(&answer), -32002);
    assert_eq!(answer["error"]["data"]["sessionId"], "nobody");
}

// proves: V2-21, V2-22
/// Options have values, without doubles, and the current one is among them; commands
/// have a type and a name that can be typed. Both are lists, always.
#[test]
fn options_and_commands_are_whole_lists() {
    let world = World::silent();
    let mut client = world.client_v2();
    let made = client.call("session/new", json!({"cwd": world.cwd()}));
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
    assert_eq!(client.offers(), [] as [Value; 0]);
}

// proves: V2-18, V2-20, V2-22
/// An option is set by a value of the type that is named; all else is refused
/// and changes nothing.
#[test]
fn options_are_set_by_their_type() {
    let world = World::silent();
    let (mut client, id) = world.session_v2();
    let set = |config: &str, kind: Value, value: Value| json!({"sessionId": id, "configId": config, "type": kind, "value": value});
    let answer = client.call(
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
        let answer = client.call("session/set_config_option", wrong.clone());
        assert_eq!(error_of(&answer), -32602, "{wrong}");
    }
    let answer = client.call(
        "session/set_config_option",
        set("thinking", json!("id"), json!("high")),
    );
    assert_eq!(
        result_of(&answer)["configOptions"][0]["currentValue"],
        "plan"
    );
    assert_eq!(client.leave().1, [] as [Value; 0]);
}

// proves: V2-18
/// A transport, a folder or a cursor that is not supported refuses the request.
#[test]
fn what_is_not_supported_is_refused() {
    let world = World::silent();
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
        let answer = client.call("session/new", params.clone());
        assert_eq!(error_of(&answer), -32602, "{params}");
    }
    for cursor in ["", "nonsense"] {
        let answer = client.call("session/list", json!({"cursor": cursor}));
        assert_eq!(error_of(&answer), -32602, "{cursor:?}");
    }
    let list = client.call("session/list", json!({}));
    assert_eq!(result_of(&list), &json!({"sessions": []}));
}
