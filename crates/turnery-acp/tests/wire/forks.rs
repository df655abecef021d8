//! `session/fork`: a copy that diverges from its source.

use crate::harness::{TestClient, TestEnv, error_code_of, result_of};
use serde_json::{Value, json};

fn load_params(world: &TestEnv, id: &str) -> Value {
    json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []})
}

fn fork(client: &mut TestClient, world: &TestEnv, id: &str) -> String {
    let forked = client.request("session/fork", load_params(world, id));
    let forked = result_of(&forked)["sessionId"].as_str().expect("an id");
    assert_ne!(forked, id);
    forked.to_owned()
}

/// Loads a session; returns its replayed updates.
fn load_updates(client: &mut TestClient, world: &TestEnv, id: &str) -> Vec<Value> {
    client.take_buffered();
    result_of(&client.request("session/load", load_params(world, id)));
    client.take_updates()
}

/// A former draft had `models` in the responses that open a session; the model is a session option now.
// proves: EXT-7
#[test]
fn open_responses_have_no_models_member() {
    let world = TestEnv::without_answers();
    let mut client = world.client(json!({}));
    let new = client.request("session/new", world.new_session_params());
    let id = result_of(&new)["sessionId"].as_str().expect("an id");
    let mut answers = vec![new.clone()];
    for method in ["session/load", "session/resume", "session/fork"] {
        answers.push(client.request(method, load_params(&world, id)));
    }
    for answer in &answers {
        let result = result_of(answer).as_object().expect("an object");
        assert!(result.contains_key("configOptions"), "{answer}");
        assert!(!result.contains_key("models"), "{answer}");
    }
}

/// The copy replays the same conversation under its own ids, and neither session sees later changes of the
/// other.
#[test]
fn fork_has_history_and_diverges() {
    let world = TestEnv::new(json!([
        {"steps": [{"thinking": "hm"}, {"text": "one"}, {"tool_call": {"name": "print", "args": {}}}]},
        {"steps": [{"text": "two"}]},
        {"steps": [{"text": "three"}]},
    ]));
    let (mut client, id) = world.session();
    client.prompt(&id, "hi");
    let copy = fork(&mut client, &world, &id);

    // By history: the model has given two answers in the copy and in the source.
    for session in [&copy, &id] {
        client.take_buffered();
        assert_eq!(client.prompt(session, "go on"), "end_turn");
        let said = client.take_updates();
        let said = said.iter().filter_map(|it| it["content"]["text"].as_str());
        assert_eq!(Vec::from_iter(said), ["three"]);
    }
    let source = load_updates(&mut client, &world, &id);
    let copied = load_updates(&mut client, &world, &copy);
    assert_eq!(source.len(), copied.len());
    let renamed = |it: &Value| it.to_string().replace(&copy, &id);
    let source: Vec<String> = source.iter().map(Value::to_string).collect();
    let copied: Vec<String> = copied.iter().map(renamed).collect();
    assert_eq!(copied, source);
}

/// A fork is stored before its response, so another process finds it.
#[test]
fn a_fork_is_stored_and_listed() {
    let world = TestEnv::new(json!([{"steps": [{"text": "one"}]}]));
    let (mut client, id) = world.session();
    client.prompt(&id, "A title");
    let copy = fork(&mut client, &world, &id);
    client.close_and_join();

    let mut client = world.client(json!({}));
    let list = client.request("session/list", json!({}));
    let titles: Vec<(&str, &str)> = result_of(&list)["sessions"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| Some((it["sessionId"].as_str()?, it["title"].as_str()?)))
        .collect();
    assert_eq!(titles.len(), 2);
    assert!(titles.contains(&(&copy, "A title")), "{titles:?}");
    // A session that is not open can be forked too.
    let again = fork(&mut client, &world, &copy);
    assert_eq!(
        load_updates(&mut client, &world, &again).len(),
        load_updates(&mut client, &world, &id).len()
    );
}

/// A running prompt is neither disturbed nor part of the copy.
#[test]
fn fork_during_prompt_has_stored_history() {
    let world = TestEnv::new(json!([
        {"when": {"last_user_contains": "wait"}, "steps": [{"text": "w"}, {"wait_for_cancel": true}]},
        {"when": {"last_user_contains": "hi"}, "steps": [{"text": "hello"}]},
    ]));
    let (mut client, id) = world.session();
    client.prompt(&id, "hi");
    let running = client.send_prompt(&id, "wait");
    client.wait_for(|message| message["params"]["update"]["content"]["text"] == "w");
    let copy = fork(&mut client, &world, &id);
    let said = load_updates(&mut client, &world, &copy);
    let said: Vec<&str> = said
        .iter()
        .filter_map(|it| it["content"]["text"].as_str())
        .collect();
    assert_eq!(said, ["hi", "hello"]);
    client.cancel(&id);
    assert_eq!(client.wait_for_stop_reason(&running), "cancelled");
}

/// A fork with a wrong folder or an unknown session is rejected and creates no session (SESS-2, SESS-8,
/// G-24).
// proves: SESS-2
#[test]
fn invalid_fork_creates_no_session() {
    let world = TestEnv::new(json!([{"steps": [{"text": "one"}]}]));
    let (mut client, id) = world.session();
    client.prompt(&id, "hi");
    let elsewhere = json!({"sessionId": id, "cwd": world.root(), "mcpServers": []});
    let refused = client.request("session/fork", elsewhere);
    assert_eq!(error_code_of(&refused), -32602);
    assert_eq!(refused["error"]["data"]["sessionId"], json!(id));
    for (params, code) in [
        (json!({"sessionId": id}), -32602),
        (json!({"sessionId": id, "cwd": "."}), -32602),
        (load_params(&world, "bogus"), -32002),
    ] {
        assert_eq!(error_code_of(&client.request("session/fork", params)), code);
    }
    let list = client.request("session/list", json!({}));
    assert_eq!(
        result_of(&list)["sessions"].as_array().map(Vec::len),
        Some(1)
    );
}
