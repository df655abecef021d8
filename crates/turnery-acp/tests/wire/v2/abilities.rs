//! Abilities: whatever a client says that it can do, nothing is asked of it that the draft has not, and
//! nothing of the first version.

use super::is_idle;
use crate::harness::{World, prompt, result_of};
use serde_json::{Value, json};

/// One answer after another that wants a file read, one changed, and a command run.
fn all_tools() -> Value {
    let calls = ["look", "change", "shell", "print"]
        .map(|name| json!({"steps": [{"tool_call": {"name": name, "args": {"command": "true"}}}]}));
    json!([calls[0], calls[1], calls[2], calls[3], {"steps": [{"text": "done"}]}])
}

// proves: V2-18
/// Files and terminals are the agent's own: those of the client, however they are offered, are not used.
/// The harness knows no other request than a question, and each line is checked.
#[test]
fn nothing_of_a_client_is_used_but_its_person() {
    let v1 = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true});
    for capabilities in [
        json!({}),
        json!({"auth": {"terminal": {}}}),
        json!({"elicitation": {"form": {}}}),
        json!({"elicitation": {"url": {}}}),
        json!({"auth": {"terminal": {}}, "elicitation": {"form": {}, "url": {}}}),
        v1.clone(),
        json!({"session": {"notices": {}, "configOptions": {"boolean": {}}}, "_later": 1}),
    ] {
        let world = World::new(all_tools());
        std::fs::write(world.file("a.txt"), "old\n").expect("a file");
        let mut client = world.connect_v2();
        let info = json!({"name": "test", "version": "1"});
        let hello = json!({"protocolVersion": 2, "info": info, "capabilities": capabilities,
            "clientCapabilities": v1});
        result_of(&client.call("initialize", hello));
        let made = client.call("session/new", json!({"cwd": world.cwd()}));
        let id = made["result"]["sessionId"].as_str().expect("an id");
        let boolean = |option: &Value| option["type"] == "boolean";
        let options = made["result"]["configOptions"].as_array().expect("a list");
        assert!(!options.iter().any(boolean));
        client.call("session/prompt", prompt(id, "hi"));
        let question =
            client.wait(|message| message.get("method").is_some() && message.get("id").is_some());
        assert_eq!(
            question["method"], "session/request_permission",
            "{capabilities}"
        );
        client.reply(
            &question,
            json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}}),
        );
        let idle = client.wait(is_idle);
        assert_eq!(idle["params"]["update"]["stopReason"], "end_turn");
        let asked = client
            .seen()
            .into_iter()
            .filter(|it| it.get("method").is_some() && it.get("id").is_some());
        assert_eq!(asked.count(), 0, "{capabilities}");
        assert_eq!(world.ran.all(), ["look", "change", "shell", "print"]);
        let written = std::fs::read_to_string(world.file("a.txt")).expect("a file");
        assert_eq!(written, "new\n");
    }
}
