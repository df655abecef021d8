//! Tests the terminals that the agent owns.

use super::encode_live;
use serde_json::json;
use turnery_engine::{CallDetail, CallId, CallKind, EventKind, ToolCall};

#[test]
fn hidden_characters_in_commands_are_visible() {
    let call_id = CallId::from("c1");
    let told = encode_live(vec![
        EventKind::ToolCallRequested {
            call: ToolCall::new(
                call_id.clone(),
                "shell",
                json!({"command": "rm\u{200b} a\u{202e}\nb\u{7}"}),
            ),
            detail: CallDetail {
                kind: CallKind::Execute,
                ..CallDetail::default()
            },
        },
        EventKind::ToolExecutionOutput {
            call_id,
            text: "out\n".to_owned(),
        },
    ]);
    let mut commands = told.iter().filter_map(|update| update.get("command"));
    let shown = commands.next().expect("a terminal");
    assert_eq!(shown, "rm⟨U+200B⟩ a⟨U+202E⟩\nb⟨U+0007⟩");
}
