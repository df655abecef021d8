//! The official test kit, requirement by requirement: what it asks in its own way and with its own patience.
//! docs/acp-kit.toml says which of our rules each of its ids stands for; here is what no other test asks just so.

use crate::harness::{Client, World, error_of, prompt, result_of};
use serde_json::{Value, json};
use std::time::Duration;

/// How long the kit listens before it believes that nothing more comes.
const QUIET: Duration = Duration::from_secs(2);

/// A picture of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The kit's handshake: no abilities, no name, the first method of the agent's own, a session.
fn shaken(world: &World) -> (Client, String) {
    let mut client = world.connect();
    let hello = client.initialize(json!({}));
    let methods = result_of(&hello)["authMethods"].as_array();
    let agents = methods.into_iter().flatten().find(|method| {
        let sort = &method["type"];
        sort.is_null() || sort == "agent"
    });
    let id = &agents.expect("a method of the agent's own")["id"];
    let login = client.call("authenticate", json!({ "methodId": id }));
    assert!(result_of(&login).is_object());
    let made = client.call("session/new", world.new_session());
    let id = result_of(&made)["sessionId"].as_str().expect("an id");
    assert!(!id.is_empty());
    let id = id.to_owned();
    (client, id)
}

fn said(text: &str) -> Value {
    json!([{"steps": [{"text": text}]}])
}

fn hangs() -> World {
    World::new(json!([{"steps": [{"text": "wait"}, {"wait_for_cancel": true}]}]))
}

fn at(world: &World, id: &str) -> Value {
    json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []})
}

/// The harness hears what is said late, or silence would prove nothing.
#[test]
fn silence_is_really_listened_to() {
    let world = World::new(json!([{"steps": [{"delay_ms": 1900}, {"text": "late"}]}]));
    let (mut client, id) = shaken(&world);
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    let late = client.silence(QUIET);
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
fn after_a_cancelled_prompt_there_is_silence() {
    let world = hangs();
    let (mut client, id) = shaken(&world);
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    client.wait(|message| message["method"] == "session/update");
    client.tell("session/cancel", json!({"sessionId": id}));
    let answer = client.answer(&asked);
    assert_eq!(result_of(&answer)["stopReason"], "cancelled");
    assert_eq!(client.silence(QUIET), [] as [Value; 0]);
}

/// The same after a prompt that ended well, with its title and its numbers.
// proves: PROMPT-7, MSG-4, UPD-2, G-4
#[test]
fn after_a_finished_prompt_there_is_silence() {
    let usage = json!({"input": 10, "output": 2});
    let world = World::new(json!([{"steps": [{"text": "hello"}], "usage": usage}]));
    let (mut client, id) = shaken(&world);
    let answer = client.call("session/prompt", prompt(&id, "hi"));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    assert_eq!(client.silence(QUIET), [] as [Value; 0]);
}

/// ACP-LOAD-001, ACP-LOAD-002, ACP-LOAD-003: an open session loads, its answer is an object, and no
/// update of any kind follows.
// proves: LOAD-2, LOAD-4, CMD-1
#[test]
fn after_a_load_there_is_silence() {
    let world = World::new(said("hello"));
    let (mut client, id) = shaken(&world);
    for prompted in [false, true] {
        if prompted {
            result_of(&client.call("session/prompt", prompt(&id, "hi")));
        }
        // What follows the answer to session/new.
        client.silence(QUIET);
        client.seen();
        client.offers();
        let answer = client.call("session/load", at(&world, &id));
        assert!(result_of(&answer).is_object());
        let shown = client.updates().len();
        assert_eq!(shown, if prompted { 2 } else { 0 });
        let before = client.offers().len();
        assert_eq!(before, 1, "the commands come before the answer");
        assert_eq!(client.silence(QUIET), [] as [Value; 0], "{prompted}");
    }
}

/// ACP-INIT-003: the greatest version, with what the second version says beside what the first says.
// proves: INIT-3, INIT-4
#[test]
fn a_version_of_the_far_future_gets_ours() {
    let world = World::silent();
    let mut client = world.connect();
    let params = json!({
        "protocolVersion": 65535,
        "info": {"name": "kit", "version": "1"},
        "clientInfo": {"name": "kit", "version": "1"},
        "capabilities": {},
        "clientCapabilities": {},
    });
    let answer = client.call("initialize", params);
    assert_eq!(result_of(&answer)["protocolVersion"], 1);
}

/// ACP-SESSION-001, ACP-SESSION-002, ACP-AUTH-001, ACP-AUTH-003.
// proves: SESS-1, AUTH-1
#[test]
fn two_sessions_have_two_ids() {
    let world = World::silent();
    let (mut client, id) = shaken(&world);
    let made = client.call("session/new", world.new_session());
    assert_ne!(result_of(&made)["sessionId"], json!(id));
    let hello = client.initialize(json!({}));
    let methods = result_of(&hello)["authMethods"].as_array().expect("a list");
    let mut ids: Vec<String> = methods.iter().map(|one| one["id"].to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), methods.len());
    assert!(methods.iter().all(|one| one["name"].is_string()));
}

/// ACP-PROMPT-003, ACP-PROMPTCAP-001, ACP-PROMPTCAP-003, ACP-META-001: each sort of block that is
/// advertised beside a text; also by the model that answers where nothing is set up, as for the kit.
// proves: PROMPT-1, PROMPT-2, INIT-11
#[test]
fn blocks_of_each_advertised_sort_are_taken() {
    let blocks = [
        json!({"type": "resource_link", "uri": "file:///w/a.txt", "name": "a.txt"}),
        json!({"type": "image", "data": PIXEL, "mimeType": "image/png"}),
        json!({"type": "resource", "resource": {"uri": "file:///w/a.txt", "text": "x"}}),
    ];
    let models = [false, true].into_iter();
    let all = models.flat_map(|offline| blocks.clone().map(|block| (offline, block)));
    for (offline, block) in all {
        let world = World::new(said("hello"));
        let (mut client, id) = shaken(&world);
        if offline {
            let params = json!({"sessionId": id, "configId": "model", "value": "offline"});
            result_of(&client.call("session/set_config_option", params));
        }
        let text = json!({"type": "text", "text": "hi"});
        let trace =
            json!({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"});
        let params = json!({"sessionId": id, "prompt": [text, block], "_meta": trace});
        let answer = client.call("session/prompt", params);
        assert_eq!(
            result_of(&answer)["stopReason"],
            "end_turn",
            "{offline} {block}"
        );
    }
}

/// ACP-RESUME-001, ACP-RESUME-002: without a list of servers, and nothing of the past.
// proves: RES-1
#[test]
fn a_resume_needs_no_list_of_servers() {
    let world = World::new(said("hello"));
    let (mut client, id) = shaken(&world);
    result_of(&client.call("session/prompt", prompt(&id, "hi")));
    client.seen();
    let params = json!({"sessionId": id, "cwd": world.cwd()});
    assert!(result_of(&client.call("session/resume", params)).is_object());
    assert_eq!(client.seen(), [] as [Value; 0]);
}

/// ACP-LIST-001, ACP-LIST-002; and what is listed can be loaded (LIST-6), and is not changed by it.
// proves: LIST-1, LIST-4, LIST-6, THEME-2
#[test]
fn what_is_listed_is_there_and_stays_as_it_is() {
    let world = World::new(said("hello"));
    let (mut client, id) = shaken(&world);
    result_of(&client.call("session/prompt", prompt(&id, "hi")));
    client.leave();
    let (mut client, other) = shaken(&world);
    let first = client.call("session/list", json!({}));
    let again = client.call("session/list", json!({}));
    assert_eq!(result_of(&first), result_of(&again));
    let none = client.call(
        "session/list",
        json!({"cwd": world.outside().join("unused")}),
    );
    assert_eq!(result_of(&none)["sessions"], json!([]));
    // The list opened nothing.
    assert_eq!(
        error_of(&client.call("session/prompt", prompt(&id, "hi"))),
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
        assert!(result_of(&client.call("session/load", at(&world, one))).is_object());
    }
}

/// ACP-DELETE-001, ACP-DELETE-002, ACP-CLOSE-001, ACP-CLOSE-002: idle or at work, open, stored or unknown.
// proves: CLOSE-1, CLOSE-2, DEL-2, DEL-3, G-20, G-21, THEME-5
#[test]
fn a_session_is_closed_and_deleted_in_every_state() {
    for method in ["session/close", "session/delete"] {
        let world = hangs();
        let (mut client, idle) = shaken(&world);
        let made = client.call("session/new", world.new_session());
        let busy = result_of(&made)["sessionId"].clone();
        let busy = busy.as_str().expect("an id");
        let (_other, stored) = shaken(&world);
        let asked = client.ask("session/prompt", prompt(busy, "hi"));
        client.wait(|message| message["method"] == "session/update");
        for id in [busy, &idle, &stored, "bogus", busy] {
            let done = client.ask(method, json!({"sessionId": id}));
            // The prompt's answer comes ahead of this one, or behind it.
            let done = client.answer(&done);
            assert_eq!(result_of(&done), &json!({}), "{method} {id}");
        }
        let seen = client.seen();
        let answer = seen.iter().find(|message| message["id"] == asked);
        assert_eq!(
            result_of(answer.expect("answered"))["stopReason"],
            "cancelled"
        );
        let load = client.call("session/load", at(&world, busy));
        match method {
            "session/close" => assert!(result_of(&load).is_object()),
            _ => assert_eq!(error_of(&load), -32002),
        }
    }
}

/// ACP-ADDDIRS-001.
// proves: DIR-1
#[test]
fn an_absolute_folder_beside_the_first_is_taken() {
    let world = World::silent();
    let (mut client, _) = shaken(&world);
    let mut params = world.new_session();
    params["additionalDirectories"] = json!([world.outside()]);
    result_of(&client.call("session/new", params));
}

/// ACP-MODES-001, ACP-MODES-002, ACP-CONFIG-001 to ACP-CONFIG-003: every value of everything offered can be
/// set, the answer has all options, and an update names what was set.
// proves: CFG-1, CFG-2, CFG-3, CFG-6, MODE-2, MODE-3, THEME-13
#[test]
fn everything_that_is_offered_can_be_set() {
    let world = World::silent();
    let (mut client, id) = shaken(&world);
    let loaded = client.call("session/load", at(&world, &id));
    let loaded = result_of(&loaded).clone();
    for mode in loaded["modes"]["availableModes"].as_array().expect("modes") {
        client.seen();
        let params = json!({"sessionId": id, "modeId": mode["id"]});
        assert_eq!(
            result_of(&client.call("session/set_mode", params)),
            &json!({})
        );
        for update in client.updates() {
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
            let set = client.call("session/set_config_option", params);
            let now = result_of(&set)["configOptions"]
                .as_array()
                .expect("options");
            assert_eq!(now.len(), options.len());
            let this = now.iter().find(|one| one["id"] == option["id"]);
            assert_eq!(&this.expect("the option")["currentValue"], value);
        }
    }
}
