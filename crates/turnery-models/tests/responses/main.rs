//! Tests OpenAI Responses over a real socket: parsed responses, errors and requests.

mod errors;
mod requests;
#[path = "../server/mod.rs"]
mod server;
mod streams;

use serde_json::{Value, json};
use turnery_engine::{Content, ModelDelta, ModelStop, Response, Usage};

/// A stream of OpenAI, with item ids that change between events as some proxies send them: reasoning in two parts, text,
/// two calls, the second with invalid arguments.
const ANSWER: &str = r#"event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"m1-0914","output":[],"usage":null}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAAearly"}}

event: response.reasoning_summary_part.added
data: {"type":"response.reasoning_summary_part.added","item_id":"rs_2","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","item_id":"rs_3","output_index":0,"summary_index":0,"delta":"H","obfuscation":"xK"}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","item_id":"rs_4","output_index":0,"summary_index":0,"delta":"m"}

event: response.reasoning_summary_text.done
data: {"type":"response.reasoning_summary_text.done","item_id":"rs_4","output_index":0,"summary_index":0,"text":"Hm"}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","item_id":"rs_5","output_index":0,"summary_index":1,"delta":"s"}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","item_id":"rs_6","output_index":0,"summary_index":1,"delta":"o"}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_7","type":"reasoning","summary":[{"type":"summary_text","text":"Hm"},{"type":"summary_text","text":"so"}],"encrypted_content":"gAAA+/==","status":null}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","phase":"commentary","content":[]}}

event: response.content_part.added
data: {"type":"response.content_part.added","item_id":"msg_2","output_index":1,"content_index":0,"part":{"type":"output_text","annotations":[],"text":""}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_3","output_index":1,"content_index":0,"delta":"Let me ","logprobs":[]}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_4","output_index":1,"content_index":0,"delta":"\"see\" €"}

event: response.output_text.done
data: {"type":"response.output_text.done","item_id":"msg_4","output_index":1,"content_index":0,"text":"Let me \"see\" €"}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":1,"item":{"id":"msg_5","type":"message","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","annotations":[],"text":"Let me \"see\" €"}]}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_a","name":"read","arguments":""}}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":2,"delta":"{\"path\":"}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_3","output_index":2,"delta":"\"a\"}"}

event: response.function_call_arguments.done
data: {"type":"response.function_call_arguments.done","item_id":"fc_4","output_index":2,"arguments":"{\"path\":\"a\"}"}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":2,"item":{"id":"fc_5","type":"function_call","status":"completed","call_id":"call_a","name":"read","arguments":"{\"path\":\"a\"}"}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":3,"item":{"id":"fc_6","type":"function_call","status":"in_progress","call_id":"call_b","name":"list","arguments":""}}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_6","output_index":3,"delta":"{oo"}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_6","output_index":3,"delta":"ps"}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":3,"item":{"id":"fc_6","type":"function_call","status":"completed","call_id":"call_b","name":"list","arguments":"{oops"}}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","model":"m1-0914","output":[{"type":"message","content":[{"type":"output_text","text":"ignored"}]}],"error":null,"incomplete_details":null,"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":64,"cache_write_tokens":6},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":8},"total_tokens":120}}}

"#;

fn opaque(value: Value) -> Content {
    Content::Opaque {
        provider: "acme".to_owned(),
        value,
    }
}

fn thinking(text: &str) -> Content {
    Content::Thinking {
        text: text.to_owned(),
        signature: None,
    }
}

fn answer() -> Response {
    Response {
        content: vec![
            thinking("Hm\n\nso"),
            opaque(json!({
                "type": "reasoning",
                "summary": [
                    {"type": "summary_text", "text": "Hm"},
                    {"type": "summary_text", "text": "so"},
                ],
                "encrypted_content": "gAAA+/==",
            })),
            Content::text("Let me \"see\" €"),
            opaque(json!({"type": "message", "phase": "commentary"})),
            server::tool_call("call_a", "read", json!({"path": "a"})),
            server::tool_call("call_b", "list", json!("{oops")),
        ],
        stop: ModelStop::ToolUse,
        raw_stop: Some("completed".to_owned()),
        usage: Some(Usage {
            input: 30,
            output: 20,
            reasoning: 8,
            cache_read: 64,
            cache_write: 6,
        }),
        model: "m1-0914".to_owned(),
        provider: "acme".to_owned(),
        tool_results: Vec::new(),
        request: None,
    }
}

fn args_delta(block: u32, name: &str, fragment: &str) -> ModelDelta {
    ModelDelta::ToolCallArgs {
        block,
        name: name.to_owned(),
        fragment: fragment.to_owned(),
    }
}

fn deltas() -> Vec<ModelDelta> {
    use server::{text_delta, thinking_delta};
    vec![
        thinking_delta(0, "H"),
        thinking_delta(0, "m"),
        thinking_delta(0, "\n\n"),
        thinking_delta(0, "s"),
        thinking_delta(0, "o"),
        text_delta(2, "Let me "),
        text_delta(2, "\"see\" €"),
        args_delta(4, "read", "{\"path\":"),
        args_delta(4, "read", "\"a\"}"),
        args_delta(5, "list", "{oo"),
        args_delta(5, "list", "ps"),
    ]
}

/// Returns a stream of these events.
fn stream(events: &[Value]) -> String {
    let events = events.iter().map(|event| format!("data: {event}\n\n"));
    events.collect()
}

/// Returns an event about the item at `index`.
fn item_event(kind: &str, index: u32, item: Value) -> Value {
    json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item})
}

/// Returns an event with a fragment for the item at `index`.
fn delta_event(kind: &str, index: u32, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": delta})
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"status": "completed"}})
}
