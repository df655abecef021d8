//! Unpacks `multi_tool_use.parallel`, a tool that models of OpenAI make up to call several tools at once.

use serde_json::Value;
use turnery_engine::{CallIds, Content, ToolCall, parse_call_args};

/// Name of the made-up tool.
pub(crate) const PARALLEL_TOOL: &str = "multi_tool_use.parallel";

/// Prefix that models put before the names of tools.
const NAMESPACE: &str = "functions.";

/// Marker of the Harmony format, which models leave behind the names of tools.
const CHANNEL_MARKER: &str = "<|";

/// Returns the name of a tool without prefix and marker.
pub(crate) fn strip_tool_name(name: &str) -> &str {
    let name = name.strip_prefix(NAMESPACE).unwrap_or(name);
    let end = name.find(CHANNEL_MARKER).unwrap_or(name.len());
    name.split_at(end).0.trim_end()
}

/// Replaces each call of the made-up tool with the calls inside. A call with other arguments stays, so that the model
/// learns that there is no such tool.
pub(crate) fn unpack(content: Vec<Content>, ids: &mut CallIds) -> Vec<Content> {
    let is_parallel =
        |item: &Content| matches!(item, Content::ToolCall(call) if call.name == PARALLEL_TOOL);
    if !content.iter().any(is_parallel) {
        return content;
    }
    let mut unpacked = Vec::with_capacity(content.len());
    for item in content {
        match item {
            Content::ToolCall(call) if call.name == PARALLEL_TOOL => match inner_calls(&call) {
                Some(calls) => {
                    unpacked.extend(calls.into_iter().enumerate().map(|(at, (name, args))| {
                        let id = match at {
                            0 => call.call_id.clone(),
                            _ => ids.take(""),
                        };
                        Content::ToolCall(ToolCall::new(id, name, args))
                    }))
                }
                None => unpacked.push(Content::ToolCall(call)),
            },
            item => unpacked.push(item),
        }
    }
    unpacked
}

/// Returns names and arguments of the calls inside; `None` if there are none, or one is malformed.
fn inner_calls(call: &ToolCall) -> Option<Vec<(String, Value)>> {
    let uses = call.args.get("tool_uses")?.as_array()?;
    let inner = uses.iter().map(|inner| {
        let name = strip_tool_name(inner.get("recipient_name")?.as_str()?);
        let args = match inner.get("parameters") {
            Some(Value::String(text)) => parse_call_args(text),
            Some(args) => args.clone(),
            None => parse_call_args(""),
        };
        Some((name.to_owned(), args))
    });
    inner
        .collect::<Option<Vec<_>>>()
        .filter(|calls| !calls.is_empty())
}
