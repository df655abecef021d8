//! Invisible and control characters in a question of the model are shown to the user as code points.

use crate::harness::{TestEnv, prompt_params};
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
