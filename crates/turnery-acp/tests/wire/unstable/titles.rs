//! `session/set_title`: a lasting title for open and stored sessions.

use super::assert_valid;
use crate::harness::{TestClient, TestEnv, error_code_of, prompt_params, result_of};
use agent_client_protocol_schema::v1::SetSessionTitleResponse;
use serde_json::{Value, json};

fn set_title(client: &mut TestClient, id: &str, title: &str) -> Value {
    let answer = client.request(
        "session/set_title",
        json!({"sessionId": id, "title": title}),
    );
    let result = result_of(&answer);
    assert_valid::<SetSessionTitleResponse>(result);
    result["title"].clone()
}

fn listed_title(client: &mut TestClient) -> Value {
    let list = client.request("session/list", json!({}));
    result_of(&list)["sessions"][0]["title"].clone()
}

/// Returns the titles reported to the client.
fn title_updates(client: &mut TestClient) -> Vec<Value> {
    let updates = client.take_updates().into_iter();
    updates
        .filter_map(|update| update.get("title").cloned())
        .collect()
}

fn env_with_two_answers() -> TestEnv {
    TestEnv::new(json!([{"steps": [{"text": "hello"}]}, {"steps": [{"text": "again"}]}]))
}

#[test]
fn title_comes_from_first_prompt_or_client() {
    let world = env_with_two_answers();
    let (mut client, id) = world.session();
    client.request("session/prompt", prompt_params(&id, "hi"));
    assert_eq!(title_updates(&mut client), ["hi"]);
    assert_eq!(listed_title(&mut client), "hi");
    assert_eq!(set_title(&mut client, &id, "Mine"), "Mine");
    assert_eq!(listed_title(&mut client), "Mine");
    client.request("session/prompt", prompt_params(&id, "other words"));
    let told = title_updates(&mut client);
    assert!(told.iter().all(|title| title == "Mine"), "{told:?}");
    assert_eq!(listed_title(&mut client), "Mine");
}

/// A title set by the client before the first prompt, during a prompt or while the session is not open is
/// kept.
#[test]
fn prompt_does_not_replace_set_title() {
    let world = env_with_two_answers();
    let (mut client, id) = world.session();
    let sessions = client.request("session/list", json!({}));
    assert_eq!(
        result_of(&sessions)["sessions"].as_array().map(Vec::len),
        Some(1)
    );
    set_title(&mut client, &id, "Before");
    client.request("session/prompt", prompt_params(&id, "hi"));
    let told = title_updates(&mut client);
    assert!(told.iter().all(|title| title == "Before"), "{told:?}");
    client.close_and_join();
    let mut client = world.client(json!({}));
    set_title(&mut client, &id, "Stored");
    assert_eq!(listed_title(&mut client), "Stored");
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    result_of(&client.request("session/load", at));
    client.take_buffered();
    client.request("session/prompt", prompt_params(&id, "more"));
    assert_eq!(listed_title(&mut client), "Stored");

    let world = TestEnv::new(json!([{"steps": [{"text": "wait"}, {"wait_for_cancel": true}]}]));
    let (mut client, id) = world.session();
    let asked = client.send_prompt(&id, "hi");
    client.wait_for(|message| message["params"]["update"]["content"]["text"] == "wait");
    set_title(&mut client, &id, "While it runs");
    client.cancel(&id);
    client.wait_for_response(&asked);
    assert_eq!(listed_title(&mut client), "While it runs");
}

#[test]
fn title_is_one_nonempty_line() {
    let world = TestEnv::without_answers();
    let (mut client, id) = world.session();
    assert_eq!(set_title(&mut client, &id, " a\n\tb \u{1b} c "), "a b c");
    let long = set_title(&mut client, &id, &"é".repeat(1000));
    assert_eq!(long.as_str().map(|title| title.chars().count()), Some(200));
    set_title(&mut client, &id, "Kept");
    for wrong in [json!(""), json!(" \n "), json!(null), json!(7)] {
        let answer = client.request(
            "session/set_title",
            json!({"sessionId": id, "title": wrong}),
        );
        assert_eq!(error_code_of(&answer), -32602, "{wrong}");
    }
    assert_eq!(listed_title(&mut client), "Kept");
    let nobody = json!({"sessionId": "nobody", "title": "a"});
    let answer = client.request("session/set_title", nobody);
    assert_eq!(error_code_of(&answer), -32002);
    assert_eq!(answer["error"]["data"]["sessionId"], "nobody");
}
