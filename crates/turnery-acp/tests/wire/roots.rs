//! A session can access the roots of the current request, not those of earlier ones (DIR-2).

use crate::harness::{TestClient, TestEnv, prompt_params, result_of};
use serde_json::{Value, json};
use turnery_acp::ServeOptions;
use turnery_tools::Toolbox;

/// Connects a client to an agent with the shipped tools.
fn client(world: &TestEnv) -> TestClient {
    let agent = world.agent_with_tools(Toolbox::coding());
    let mut client = TestClient::connect(agent, ServeOptions::default());
    client.initialize(json!({}));
    client
}

/// Returns the status of the call that reads the other folder.
fn outside_read_status(client: &mut TestClient, id: &str) -> Value {
    let answer = client.request("session/prompt", prompt_params(id, "look"));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    let updates = client.take_updates();
    let mut ended = updates.iter().filter_map(|update| update.get("status"));
    ended.next_back().expect("a call").clone()
}

// proves: DIR-2, THEME-20
#[test]
fn only_roots_of_this_request_are_accessible() {
    let world = TestEnv::without_answers();
    let beside = world.root().join("beside");
    std::fs::create_dir(&beside).expect("a folder");
    std::fs::write(beside.join("a.txt"), "text").expect("a file");
    let path = beside.join("a.txt");
    let look = json!({"tool_call": {"name": "read_file", "args": {"path": path}}});
    let world = world.with_answers(json!([
        {"steps": [look]}, {"steps": [{"text": "1"}]},
        {"steps": [look]}, {"steps": [{"text": "2"}]},
        {"steps": [look]}, {"steps": [{"text": "3"}]},
        {"steps": [look]}, {"steps": [{"text": "4"}]},
    ]));
    let mut first = client(&world);
    let mut params = world.new_session_params();
    params["additionalDirectories"] = json!([beside]);
    let made = first.request("session/new", params.clone());
    let id = result_of(&made)["sessionId"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(outside_read_status(&mut first, &id), "completed");
    first.close_and_join();

    // After reopening, roots are available only if given again.
    for (method, roots, expected) in [
        ("session/resume", json!(null), "failed"),
        ("session/load", json!([]), "failed"),
        ("session/load", json!([beside]), "completed"),
    ] {
        let mut client = client(&world);
        let mut at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
        at["additionalDirectories"] = roots.clone();
        result_of(&client.request(method, at));
        client.take_buffered();
        assert_eq!(
            outside_read_status(&mut client, &id),
            expected,
            "{method} {roots}"
        );
    }
}
