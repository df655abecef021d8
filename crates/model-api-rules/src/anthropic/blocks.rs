//! Finds blocks, calls and results.

use crate::json::{list, text};
use serde_json::Value;

/// Returns the blocks of a content. A plain text has none.
pub(super) fn blocks(message: &Value) -> &[Value] {
    list(message, "content")
}

/// Returns each block of the messages with its place, those within results included.
pub(super) fn all_blocks(body: &Value) -> Vec<(String, &str, &Value)> {
    let mut all = Vec::new();
    for (i, message) in list(body, "messages").iter().enumerate() {
        for (j, block) in blocks(message).iter().enumerate() {
            let at = format!("messages.{i}.content.{j}");
            for (k, inner) in blocks(block).iter().enumerate() {
                all.push((format!("{at}.content.{k}"), text(inner, "type"), inner));
            }
            all.push((at, text(block, "type"), block));
        }
    }
    all
}

pub(super) fn is_thinking(block: &Value) -> bool {
    matches!(text(block, "type"), "thinking" | "redacted_thinking")
}

/// Returns the ids of a message's calls.
pub(super) fn call_ids(message: &Value) -> Vec<&str> {
    let calls = blocks(message)
        .iter()
        .filter(|block| text(block, "type") == "tool_use");
    calls.map(|call| text(call, "id")).collect()
}

/// Returns the ids that a message's results answer.
pub(super) fn result_ids(message: &Value) -> Vec<&str> {
    let results = blocks(message)
        .iter()
        .filter(|block| text(block, "type") == "tool_result");
    results.map(|result| text(result, "tool_use_id")).collect()
}
