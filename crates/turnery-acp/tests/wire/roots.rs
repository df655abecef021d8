//! Roots: what a session may touch is what this request names, and not what an earlier one did (DIR-2).

use crate::harness::{Client, World, prompt, result_of};
use serde_json::{Value, json};
use turnery_acp::ServeOptions;
use turnery_tools::Toolbox;

/// A client of the tools that people get.
fn client(world: &World) -> Client {
    let agent = world.agent_with_tools(Toolbox::coding());
    let mut client = Client::connect(agent, ServeOptions::default());
    client.initialize(json!({}));
    client
}

/// What the call that looks into the other folder comes to.
fn looks(client: &mut Client, id: &str) -> Value {
    let answer = client.call("session/prompt", prompt(id, "look"));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    let updates = client.updates();
    let mut ended = updates.iter().filter_map(|update| update.get("status"));
    ended.next_back().expect("a call").clone()
}

// proves: DIR-2, THEME-20
#[test]
fn only_the_roots_of_this_request_are_open() {
    let world = World::silent();
    let beside = world.outside().join("beside");
    std::fs::create_dir(&beside).expect("a folder");
    std::fs::write(beside.join("a.txt"), "text").expect("a file");
    let path = beside.join("a.txt");
    let look = json!({"tool_call": {"name": "read_file", "args": {"path": path}}});
    let world = world.answering(json!([
        {"steps": [look]}, {"steps": [{"text": "1"}]},
        {"steps": [look]}, {"steps": [{"text": "2"}]},
        {"steps": [look]}, {"steps": [{"text": "3"}]},
        {"steps": [look]}, {"steps": [{"text": "4"}]},
    ]));
    let mut first = client(&world);
    let mut params = world.new_session();
    params["additionalDirectories"] = json!([beside]);
    let made = first.call("session/new", params.clone());
    let id = result_of(&made)["sessionId"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(looks(&mut first, &id), "completed");
    first.leave();

    // Opened again: without roots there is none, and with them they are back.
    for (method, roots, expected) in [
        ("session/resume", json!(null), "failed"),
        ("session/load", json!([]), "failed"),
        ("session/load", json!([beside]), "completed"),
    ] {
        let mut client = client(&world);
        let mut at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
        at["additionalDirectories"] = roots.clone();
        result_of(&client.call(method, at));
        client.seen();
        assert_eq!(looks(&mut client, &id), expected, "{method} {roots}");
    }
}
