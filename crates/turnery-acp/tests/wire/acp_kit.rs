//! Repeats checks of the official ACP test kit with the kit's own requests. `docs/acp-kit.toml` maps the
//! kit's ids to requirements; these tests cover what neither a conformance case nor another test covers.

use crate::harness::{TestClient, TestEnv, error_code_of, result_of};
use serde_json::{Value, json};

/// An image of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Connects like the kit: initializes without capabilities or client name, logs in with the first method of
/// type `agent`, and creates a session; returns its id.
fn handshake(world: &TestEnv) -> (TestClient, String) {
    let mut client = world.connect();
    let hello = client.initialize(json!({}));
    let methods = result_of(&hello)["authMethods"].as_array();
    let agents = methods.into_iter().flatten().find(|method| {
        let sort = &method["type"];
        sort.is_null() || sort == "agent"
    });
    let id = &agents.expect("a method of the agent's own")["id"];
    let login = client.request("authenticate", json!({ "methodId": id }));
    assert!(result_of(&login).is_object());
    let id = client.new_session(world.new_session_params());
    assert!(!id.is_empty());
    let id = id.to_owned();
    (client, id)
}

fn text_answer(text: &str) -> Value {
    json!([{"steps": [{"text": text}]}])
}

fn hanging_env() -> TestEnv {
    TestEnv::new(json!([{"steps": [{"text": "wait"}, {"wait_for_cancel": true}]}]))
}

fn load_params(world: &TestEnv, id: &str) -> Value {
    json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []})
}

/// Each advertised block type is accepted beside a text, also by the offline model (ACP-PROMPT-003,
/// ACP-PROMPTCAP-001, ACP-PROMPTCAP-003, ACP-META-001).
// proves: PROMPT-1, PROMPT-2, INIT-11, UP-37
#[test]
fn every_advertised_block_is_accepted() {
    let blocks = [
        json!({"type": "resource_link", "uri": "file:///w/a.txt", "name": "a.txt"}),
        json!({"type": "image", "data": PIXEL, "mimeType": "image/png"}),
        json!({"type": "resource", "resource": {"uri": "file:///w/a.txt", "text": "x"}}),
    ];
    let models = [false, true].into_iter();
    let all = models.flat_map(|offline| blocks.clone().map(|block| (offline, block)));
    for (offline, block) in all {
        let world = TestEnv::new(text_answer("hello"));
        let (mut client, id) = handshake(&world);
        if offline {
            let params = json!({"sessionId": id, "configId": "model", "value": "offline"});
            result_of(&client.request("session/set_config_option", params));
        }
        let text = json!({"type": "text", "text": "hi"});
        let trace =
            json!({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"});
        let params = json!({"sessionId": id, "prompt": [text, block], "_meta": trace});
        let answer = client.request("session/prompt", params);
        assert_eq!(
            result_of(&answer)["stopReason"],
            "end_turn",
            "{offline} {block}"
        );
    }
}

/// Closing and deleting succeed for running, idle, stored and unknown sessions, and cancel a running prompt
/// (ACP-DELETE-001, ACP-DELETE-002, ACP-CLOSE-001, ACP-CLOSE-002).
// proves: CLOSE-1, CLOSE-2, DEL-2, DEL-3, G-20, G-21, THEME-5, G-2
#[test]
fn close_and_delete_work_in_every_state() {
    for method in ["session/close", "session/delete"] {
        let world = hanging_env();
        let (mut client, idle) = handshake(&world);
        let made = client.request("session/new", world.new_session_params());
        let busy = result_of(&made)["sessionId"].clone();
        let busy = busy.as_str().expect("an id");
        let (_other, stored) = handshake(&world);
        let asked = client.send_prompt(busy, "hi");
        client.wait_for(|message| message["method"] == "session/update");
        for id in [busy, &idle, &stored, "bogus", busy] {
            let done = client.send_request(method, json!({"sessionId": id}));
            // The prompt's response may come before or after this one.
            let done = client.wait_for_response(&done);
            assert_eq!(result_of(&done), &json!({}), "{method} {id}");
        }
        let seen = client.take_buffered();
        let answer = seen.iter().find(|message| message["id"] == asked);
        assert_eq!(
            result_of(answer.expect("answered"))["stopReason"],
            "cancelled"
        );
        let load = client.request("session/load", load_params(&world, busy));
        match method {
            "session/close" => assert!(result_of(&load).is_object()),
            _ => assert_eq!(error_code_of(&load), -32002),
        }
    }
}

/// Every offered mode and option value can be set, the response has all options, and a mode update, if sent,
/// names the new mode (ACP-MODES-001, ACP-MODES-002, ACP-CONFIG-001 to ACP-CONFIG-003).
// proves: CFG-1, CFG-2, CFG-3, CFG-6, MODE-2, MODE-3, THEME-13
#[test]
fn every_offered_option_can_be_set() {
    let world = TestEnv::without_answers();
    let (mut client, id) = handshake(&world);
    let loaded = client.request("session/load", load_params(&world, &id));
    let loaded = result_of(&loaded).clone();
    for mode in loaded["modes"]["availableModes"].as_array().expect("modes") {
        client.take_buffered();
        let params = json!({"sessionId": id, "modeId": mode["id"]});
        assert_eq!(
            result_of(&client.request("session/set_mode", params)),
            &json!({})
        );
        for update in client.take_updates() {
            if update["sessionUpdate"] == "current_mode_update" {
                assert_eq!(update["currentModeId"], mode["id"]);
            }
        }
    }
    let options = loaded["configOptions"].as_array().expect("options");
    for option in options {
        assert_eq!(
            option["type"], "select",
            "nobody said that it takes booleans"
        );
        for value in option["options"].as_array().expect("values") {
            let value = &value["value"];
            let params = json!({"sessionId": id, "configId": option["id"], "value": value});
            let set = client.request("session/set_config_option", params);
            let now = result_of(&set)["configOptions"]
                .as_array()
                .expect("options");
            assert_eq!(now.len(), options.len());
            let this = now.iter().find(|one| one["id"] == option["id"]);
            assert_eq!(&this.expect("the option")["currentValue"], value);
        }
    }
}
