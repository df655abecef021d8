//! The official ACP test kit, requirement by requirement, with the kit's own requests and timeouts.
//! `docs/acp-kit.toml` maps its ids to requirements; these tests cover what no other test does.

use crate::harness::{TestClient, TestEnv, error_of, prompt_params, result_of};
use serde_json::{Value, json};
use std::time::Duration;

/// Time the kit listens before it concludes that nothing more comes.
const LISTEN_TIME: Duration = Duration::from_secs(2);

/// An image of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The kit's handshake: no capabilities, no client name, the first login method of type agent, a session.
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
    let made = client.request("session/new", world.new_session_params());
    let id = result_of(&made)["sessionId"].as_str().expect("an id");
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

/// Without this, silence would prove nothing.
#[test]
fn harness_hears_late_updates() {
    let world = TestEnv::new(json!([{"steps": [{"delay_ms": 1900}, {"text": "late"}]}]));
    let (mut client, id) = handshake(&world);
    let asked = client.send_request("session/prompt", prompt_params(&id, "hi"));
    let late = client.messages_during(LISTEN_TIME);
    assert!(
        late.iter()
            .any(|message| message["params"]["update"]["content"]["text"] == "late"),
        "{late:?}"
    );
    let ended = late.iter().any(|message| message["id"] == asked);
    assert!(ended, "{late:?}");
}

/// ACP-CANCEL-001, ACP-CANCEL-002: `cancelled`, and then no update of any kind.
// proves: CANCEL-3, CANCEL-4, CANCEL-5, PROMPT-7, MSG-4, UPD-2, G-3, G-4
#[test]
fn no_update_follows_cancelled_prompt() {
    let world = hanging_env();
    let (mut client, id) = handshake(&world);
    let asked = client.send_request("session/prompt", prompt_params(&id, "hi"));
    client.wait_for(|message| message["method"] == "session/update");
    client.send_notification("session/cancel", json!({"sessionId": id}));
    let answer = client.wait_for_response(&asked);
    assert_eq!(result_of(&answer)["stopReason"], "cancelled");
    assert_eq!(client.messages_during(LISTEN_TIME), [] as [Value; 0]);
}

/// The same after a completed prompt with title and usage.
// proves: PROMPT-7, MSG-4, UPD-2, G-4
#[test]
fn no_update_follows_finished_prompt() {
    let usage = json!({"input": 10, "output": 2});
    let world = TestEnv::new(json!([{"steps": [{"text": "hello"}], "usage": usage}]));
    let (mut client, id) = handshake(&world);
    let answer = client.request("session/prompt", prompt_params(&id, "hi"));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    assert_eq!(client.messages_during(LISTEN_TIME), [] as [Value; 0]);
}

/// ACP-LOAD-001, ACP-LOAD-002, ACP-LOAD-003: an open session can be loaded, the result is an object, and no
/// update follows.
// proves: LOAD-2, LOAD-4, CMD-1
#[test]
fn no_update_follows_load_response() {
    let world = TestEnv::new(text_answer("hello"));
    let (mut client, id) = handshake(&world);
    for prompted in [false, true] {
        if prompted {
            result_of(&client.request("session/prompt", prompt_params(&id, "hi")));
        }
        // Updates after the response to session/new.
        client.messages_during(LISTEN_TIME);
        client.take_buffered();
        client.take_command_offers();
        let answer = client.request("session/load", load_params(&world, &id));
        assert!(result_of(&answer).is_object());
        let shown = client.take_updates().len();
        assert_eq!(shown, if prompted { 2 } else { 0 });
        let before = client.take_command_offers().len();
        assert_eq!(before, 1, "the commands come before the answer");
        assert_eq!(
            client.messages_during(LISTEN_TIME),
            [] as [Value; 0],
            "{prompted}"
        );
    }
}

/// ACP-INIT-003: the greatest version, with v2 members beside the v1 members.
// proves: INIT-3, INIT-4
#[test]
fn greatest_version_is_answered_with_v1() {
    let world = TestEnv::without_answers();
    let mut client = world.connect();
    let params = json!({
        "protocolVersion": 65535,
        "info": {"name": "kit", "version": "1"},
        "clientInfo": {"name": "kit", "version": "1"},
        "capabilities": {},
        "clientCapabilities": {},
    });
    let answer = client.request("initialize", params);
    assert_eq!(result_of(&answer)["protocolVersion"], 1);
}

/// ACP-SESSION-001, ACP-SESSION-002, ACP-AUTH-001, ACP-AUTH-003.
// proves: SESS-1, AUTH-1
#[test]
fn session_ids_and_auth_method_ids_are_unique() {
    let world = TestEnv::without_answers();
    let (mut client, id) = handshake(&world);
    let made = client.request("session/new", world.new_session_params());
    assert_ne!(result_of(&made)["sessionId"], json!(id));
    let hello = client.initialize(json!({}));
    let methods = result_of(&hello)["authMethods"].as_array().expect("a list");
    let mut ids: Vec<String> = methods.iter().map(|one| one["id"].to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), methods.len());
    assert!(methods.iter().all(|one| one["name"].is_string()));
}

/// ACP-PROMPT-003, ACP-PROMPTCAP-001, ACP-PROMPTCAP-003, ACP-META-001: each advertised block type beside a
/// text; also with the offline model that answers where nothing is configured.
// proves: PROMPT-1, PROMPT-2, INIT-11
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

/// ACP-RESUME-001, ACP-RESUME-002: without a list of servers, and without a replay.
// proves: RES-1
#[test]
fn resume_works_without_mcp_servers() {
    let world = TestEnv::new(text_answer("hello"));
    let (mut client, id) = handshake(&world);
    result_of(&client.request("session/prompt", prompt_params(&id, "hi")));
    client.take_buffered();
    let params = json!({"sessionId": id, "cwd": world.cwd()});
    assert!(result_of(&client.request("session/resume", params)).is_object());
    assert_eq!(client.take_buffered(), [] as [Value; 0]);
}

/// ACP-LIST-001, ACP-LIST-002; listed sessions can be loaded (LIST-6), and listing does not change them.
// proves: LIST-1, LIST-4, LIST-6, THEME-2
#[test]
fn listed_sessions_load_and_listing_changes_nothing() {
    let world = TestEnv::new(text_answer("hello"));
    let (mut client, id) = handshake(&world);
    result_of(&client.request("session/prompt", prompt_params(&id, "hi")));
    client.close_and_join();
    let (mut client, other) = handshake(&world);
    let first = client.request("session/list", json!({}));
    let again = client.request("session/list", json!({}));
    assert_eq!(result_of(&first), result_of(&again));
    let none = client.request("session/list", json!({"cwd": world.root().join("unused")}));
    assert_eq!(result_of(&none)["sessions"], json!([]));
    // The list opened nothing.
    assert_eq!(
        error_of(&client.request("session/prompt", prompt_params(&id, "hi"))),
        -32002
    );
    let listed = result_of(&first)["sessions"].as_array().expect("a list");
    let mut ids: Vec<&str> = listed
        .iter()
        .map(|one| one["sessionId"].as_str().expect("an id"))
        .collect();
    ids.sort_unstable();
    let mut expected = [id.as_str(), other.as_str()];
    expected.sort_unstable();
    assert_eq!(ids, expected);
    for one in ids {
        assert!(result_of(&client.request("session/load", load_params(&world, one))).is_object());
    }
}

/// ACP-DELETE-001, ACP-DELETE-002, ACP-CLOSE-001, ACP-CLOSE-002: idle or running, open, stored or unknown.
// proves: CLOSE-1, CLOSE-2, DEL-2, DEL-3, G-20, G-21, THEME-5
#[test]
fn close_and_delete_work_in_every_state() {
    for method in ["session/close", "session/delete"] {
        let world = hanging_env();
        let (mut client, idle) = handshake(&world);
        let made = client.request("session/new", world.new_session_params());
        let busy = result_of(&made)["sessionId"].clone();
        let busy = busy.as_str().expect("an id");
        let (_other, stored) = handshake(&world);
        let asked = client.send_request("session/prompt", prompt_params(busy, "hi"));
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
            _ => assert_eq!(error_of(&load), -32002),
        }
    }
}

/// ACP-ADDDIRS-001.
// proves: DIR-1
#[test]
fn absolute_additional_directory_is_accepted() {
    let world = TestEnv::without_answers();
    let (mut client, _) = handshake(&world);
    let mut params = world.new_session_params();
    params["additionalDirectories"] = json!([world.root()]);
    result_of(&client.request("session/new", params));
}

/// ACP-MODES-001, ACP-MODES-002, ACP-CONFIG-001 to ACP-CONFIG-003: every offered value can be set, the
/// response has all options, and an update names the new value.
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
