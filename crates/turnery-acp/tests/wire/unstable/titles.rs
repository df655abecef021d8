//! `session/set_title`: a name that stays, for open sessions and stored ones.

use super::valid;
use crate::harness::{Client, World, error_of, prompt, result_of};
use agent_client_protocol_schema::v1::SetSessionTitleResponse;
use serde_json::{Value, json};

fn set(client: &mut Client, id: &str, title: &str) -> Value {
    let answer = client.call(
        "session/set_title",
        json!({"sessionId": id, "title": title}),
    );
    let result = result_of(&answer);
    valid::<SetSessionTitleResponse>(result);
    result["title"].clone()
}

fn listed(client: &mut Client) -> Value {
    let list = client.call("session/list", json!({}));
    result_of(&list)["sessions"][0]["title"].clone()
}

/// The titles that the client was told beside.
fn told(client: &mut Client) -> Vec<Value> {
    let updates = client.updates().into_iter();
    updates
        .filter_map(|update| update.get("title").cloned())
        .collect()
}

fn talks() -> World {
    World::new(json!([{"steps": [{"text": "hello"}]}, {"steps": [{"text": "again"}]}]))
}

#[test]
fn a_session_is_named_by_its_first_prompt_or_by_its_client() {
    let world = talks();
    let (mut client, id) = world.session();
    client.call("session/prompt", prompt(&id, "hi"));
    assert_eq!(told(&mut client), ["hi"]);
    assert_eq!(listed(&mut client), "hi");
    assert_eq!(set(&mut client, &id, "Mine"), "Mine");
    assert_eq!(listed(&mut client), "Mine");
    client.call("session/prompt", prompt(&id, "other words"));
    let told = told(&mut client);
    assert!(told.iter().all(|title| title == "Mine"), "{told:?}");
    assert_eq!(listed(&mut client), "Mine");
}

/// Also one that is given before the first prompt, while it runs, or when the session is not open.
#[test]
fn no_prompt_takes_a_title_away() {
    let world = talks();
    let (mut client, id) = world.session();
    let sessions = client.call("session/list", json!({}));
    assert_eq!(
        result_of(&sessions)["sessions"].as_array().map(Vec::len),
        Some(1)
    );
    set(&mut client, &id, "Before");
    client.call("session/prompt", prompt(&id, "hi"));
    let told = told(&mut client);
    assert!(told.iter().all(|title| title == "Before"), "{told:?}");
    client.leave();
    let mut client = world.client(json!({}));
    set(&mut client, &id, "Stored");
    assert_eq!(listed(&mut client), "Stored");
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    result_of(&client.call("session/load", at));
    client.seen();
    client.call("session/prompt", prompt(&id, "more"));
    assert_eq!(listed(&mut client), "Stored");

    let world = World::new(json!([{"steps": [{"text": "wait"}, {"wait_for_cancel": true}]}]));
    let (mut client, id) = world.session();
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    client.wait(|message| message["params"]["update"]["content"]["text"] == "wait");
    set(&mut client, &id, "While it runs");
    client.tell("session/cancel", json!({"sessionId": id}));
    client.answer(&asked);
    assert_eq!(listed(&mut client), "While it runs");
}

#[test]
fn a_title_is_one_line_that_says_something() {
    let world = World::silent();
    let (mut client, id) = world.session();
    assert_eq!(set(&mut client, &id, " a\n\tb \u{1b} c "), "a b c");
    let long = set(&mut client, &id, &"é".repeat(1000));
    assert_eq!(long.as_str().map(|title| title.chars().count()), Some(200));
    set(&mut client, &id, "Kept");
    for wrong in [json!(""), json!(" \n "), json!(null), json!(7)] {
        let answer = client.call(
            "session/set_title",
            json!({"sessionId": id, "title": wrong}),
        );
        assert_eq!(error_of(&answer), -32602, "{wrong}");
    }
    assert_eq!(listed(&mut client), "Kept");
    let nobody = json!({"sessionId": "nobody", "title": "a"});
    let answer = client.call("session/set_title", nobody);
    assert_eq!(error_of(&answer), -32002);
    assert_eq!(answer["error"]["data"]["sessionId"], "nobody");
}
