//! Invisible and control characters in a question of the model, and in titles of sessions, are shown to the user as
//! code points.

use crate::harness::{TestEnv, prompt_params, result_of};
use serde_json::json;

#[test]
fn hidden_characters_in_questions_are_visible() {
    let question = "Delete\u{200b} it\u{202e}?\u{7}";
    let world = TestEnv::new(json!([
        {"steps": [{"tool_call": {"name": "ask_user", "args": {"question": question}}}]},
        {"steps": [{"text": "done"}]},
    ]));
    let (mut client, id) = world.session_with(json!({"elicitation": {"form": {}}}));
    let asked = client.send_request("session/prompt", prompt_params(&id, "hi"));
    let request = client.wait_for_request("elicitation/create");
    assert_eq!(
        request["params"]["message"],
        "Delete⟨U+200B⟩ it⟨U+202E⟩?⟨U+0007⟩"
    );
    client.respond(&request, json!({"action": "decline"}));
    client.wait_for_response(&asked);
}

/// The first prompt, which becomes the title, may be pasted from anywhere.
#[test]
fn hidden_characters_in_session_titles_are_visible() {
    let world = TestEnv::new(json!([{"steps": [{"text": "done"}]}]));
    let (mut client, id) = world.session_with(json!({}));
    assert_eq!(client.prompt(&id, "undo\u{202e} it"), "end_turn");
    let title = "undo⟨U+202E⟩ it";
    let updates = client.take_updates();
    let mut titles = updates.iter().filter_map(|update| update["title"].as_str());
    assert_eq!(titles.next(), Some(title), "{updates:?}");
    let list = client.request("session/list", json!({}));
    assert_eq!(result_of(&list)["sessions"][0]["title"], title, "{list}");
}
