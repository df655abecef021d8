//! Whatever capabilities a client declares, the agent sends no request outside the draft and none of v1.

use super::is_idle;
use crate::harness::{TestEnv, prompt_params, result_of};
use serde_json::{Value, json};

/// Returns model answers that call `look`, `change`, `shell` and `print`.
fn answers_calling_tools() -> Value {
    let calls = ["look", "change", "shell", "print"]
        .map(|name| json!({"steps": [{"tool_call": {"name": name, "args": {"command": "true"}}}]}));
    json!([calls[0], calls[1], calls[2], calls[3], {"steps": [{"text": "done"}]}])
}

// proves: V2-18
/// Files and terminals are the agent's own: those of the client are never used, whatever it declares. The
/// harness accepts only permission requests, and validates each line.
#[test]
fn v2_client_is_asked_only_for_permission() {
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
        let world = TestEnv::new(answers_calling_tools());
        std::fs::write(world.file("a.txt"), "old\n").expect("a file");
        let mut client = world.connect_v2();
        let info = json!({"name": "test", "version": "1"});
        let hello = json!({"protocolVersion": 2, "info": info, "capabilities": capabilities,
            "clientCapabilities": v1});
        result_of(&client.request("initialize", hello));
        let made = client.request("session/new", json!({"cwd": world.cwd()}));
        let id = made["result"]["sessionId"].as_str().expect("an id");
        let boolean = |option: &Value| option["type"] == "boolean";
        let options = made["result"]["configOptions"].as_array().expect("a list");
        assert!(!options.iter().any(boolean));
        client.request("session/prompt", prompt_params(id, "hi"));
        let question = client
            .wait_for(|message| message.get("method").is_some() && message.get("id").is_some());
        assert_eq!(
            question["method"], "session/request_permission",
            "{capabilities}"
        );
        client.choose(&question, "allow_once");
        let idle = client.wait_for(is_idle);
        assert_eq!(idle["params"]["update"]["stopReason"], "end_turn");
        let asked = client
            .take_buffered()
            .into_iter()
            .filter(|it| it.get("method").is_some() && it.get("id").is_some());
        assert_eq!(asked.count(), 0, "{capabilities}");
        assert_eq!(world.run_log.all(), ["look", "change", "shell", "print"]);
        let written = std::fs::read_to_string(world.file("a.txt")).expect("a file");
        assert_eq!(written, "new\n");
    }
}
