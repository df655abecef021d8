//! `session/fork`: a copy that goes its own way.

use crate::harness::{Client, World, error_of, prompt, result_of};
use serde_json::{Value, json};

fn at(world: &World, id: &str) -> Value {
    json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []})
}

fn fork(client: &mut Client, world: &World, id: &str) -> String {
    let forked = client.call("session/fork", at(world, id));
    let forked = result_of(&forked)["sessionId"].as_str().expect("an id");
    assert_ne!(forked, id);
    forked.to_owned()
}

/// All that a session shows when it is loaded, but for what names the session and when.
fn shown(client: &mut Client, world: &World, id: &str) -> Vec<Value> {
    client.seen();
    result_of(&client.call("session/load", at(world, id)));
    client.updates()
}

#[test]
fn a_fork_is_advertised() {
    let world = World::silent();
    let mut client = world.connect();
    let said = client.initialize(json!({}));
    let sessions = &result_of(&said)["agentCapabilities"]["sessionCapabilities"];
    assert_eq!(sessions["fork"], json!({}));
}

/// A former draft had `models` in what opens a session, which is an option of the session now.
// proves: EXT-7
#[test]
fn opening_a_session_answers_no_models_of_a_former_draft() {
    let world = World::silent();
    let mut client = world.client(json!({}));
    let new = client.call("session/new", world.new_session());
    let id = result_of(&new)["sessionId"].as_str().expect("an id");
    let mut answers = vec![new.clone()];
    for method in ["session/load", "session/resume", "session/fork"] {
        answers.push(client.call(method, at(&world, id)));
    }
    for answer in &answers {
        let result = result_of(answer).as_object().expect("an object");
        assert!(result.contains_key("configOptions"), "{answer}");
        assert!(!result.contains_key("models"), "{answer}");
    }
}

/// The copy shows what the source showed, under ids of its own, and neither sees what the other does next.
#[test]
fn a_fork_has_the_history_and_a_life_of_its_own() {
    let world = World::new(json!([
        {"steps": [{"thinking": "hm"}, {"text": "one"}, {"tool_call": {"name": "print", "args": {}}}]},
        {"steps": [{"text": "two"}]},
        {"steps": [{"text": "three"}]},
    ]));
    let (mut client, id) = world.session();
    result_of(&client.call("session/prompt", prompt(&id, "hi")));
    let copy = fork(&mut client, &world, &id);

    // By history: the model has given two answers in the copy as well as in the source.
    for session in [&copy, &id] {
        client.seen();
        let answer = client.call("session/prompt", prompt(session, "go on"));
        assert_eq!(result_of(&answer)["stopReason"], "end_turn");
        let said = client.updates();
        let said = said.iter().filter_map(|it| it["content"]["text"].as_str());
        assert_eq!(Vec::from_iter(said), ["three"]);
    }
    let source = shown(&mut client, &world, &id);
    let copied = shown(&mut client, &world, &copy);
    assert_eq!(source.len(), copied.len());
    let renamed = |it: &Value| it.to_string().replace(&copy, &id);
    let source: Vec<String> = source.iter().map(Value::to_string).collect();
    let copied: Vec<String> = copied.iter().map(renamed).collect();
    assert_eq!(copied, source);
}

/// Asked for again by another process, it is there: a fork is stored before it is answered.
#[test]
fn a_fork_is_stored_and_listed() {
    let world = World::new(json!([{"steps": [{"text": "one"}]}]));
    let (mut client, id) = world.session();
    result_of(&client.call("session/prompt", prompt(&id, "A title")));
    let copy = fork(&mut client, &world, &id);
    client.leave();

    let mut client = world.client(json!({}));
    let list = client.call("session/list", json!({}));
    let titles: Vec<(&str, &str)> = result_of(&list)["sessions"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| Some((it["sessionId"].as_str()?, it["title"].as_str()?)))
        .collect();
    assert_eq!(titles.len(), 2);
    assert!(titles.contains(&(&copy, "A title")), "{titles:?}");
    // Also one that is not open here.
    let again = fork(&mut client, &world, &copy);
    assert_eq!(
        shown(&mut client, &world, &again).len(),
        shown(&mut client, &world, &id).len()
    );
}

/// A prompt that runs is not disturbed, and not part of the copy.
#[test]
fn a_fork_beside_a_running_prompt_has_what_was_there_before() {
    let world = World::new(json!([
        {"when": {"last_user_contains": "wait"}, "steps": [{"text": "w"}, {"wait_for_cancel": true}]},
        {"when": {"last_user_contains": "hi"}, "steps": [{"text": "hello"}]},
    ]));
    let (mut client, id) = world.session();
    result_of(&client.call("session/prompt", prompt(&id, "hi")));
    let running = client.ask("session/prompt", prompt(&id, "wait"));
    client.wait(|message| message["params"]["update"]["content"]["text"] == "w");
    let copy = fork(&mut client, &world, &id);
    let said = shown(&mut client, &world, &copy);
    let said: Vec<&str> = said
        .iter()
        .filter_map(|it| it["content"]["text"].as_str())
        .collect();
    assert_eq!(said, ["hi", "hello"]);
    client.tell("session/cancel", json!({"sessionId": id}));
    assert_eq!(
        result_of(&client.answer(&running))["stopReason"],
        "cancelled"
    );
}

/// SESS-2, SESS-8, G-24: refused, and no half of a copy is left.
// proves: SESS-2
#[test]
fn a_fork_that_does_not_fit_makes_no_session() {
    let world = World::new(json!([{"steps": [{"text": "one"}]}]));
    let (mut client, id) = world.session();
    result_of(&client.call("session/prompt", prompt(&id, "hi")));
    let elsewhere = json!({"sessionId": id, "cwd": world.outside(), "mcpServers": []});
    let refused = client.call("session/fork", elsewhere);
    assert_eq!(error_of(&refused), -32602);
    assert_eq!(refused["error"]["data"]["sessionId"], json!(id));
    for (params, code) in [
        (json!({"sessionId": id}), -32602),
        (json!({"sessionId": id, "cwd": "."}), -32602),
        (at(&world, "bogus"), -32002),
    ] {
        assert_eq!(error_of(&client.call("session/fork", params)), code);
    }
    let list = client.call("session/list", json!({}));
    assert_eq!(
        result_of(&list)["sessions"].as_array().map(Vec::len),
        Some(1)
    );
}
