//! Parses requests and encodes responses of OpenAI Chat Completions.

use super::{
    encoder::{
        ResponseEnd, ResponseHead, ResponsePart, StreamEncoder, ToolCall, merge_parts, sse_event,
    },
    request::{Api, MessageRole, ModelRequest, array_items, content_text, render_call, str_field},
    script::FinishReason,
};
use bytes::Bytes;
use serde_json::{Map, Value, json};

/// Creation time of every response, fixed so that runs are reproducible. Unit: seconds since the Unix epoch.
pub(super) const CREATED_AT: u64 = 1_700_000_000;

pub(super) fn parse_request(body: &Value) -> ModelRequest {
    let schema = body.pointer("/response_format/json_schema/schema");
    let (model, streaming) = (str_field(body, "model"), body["stream"] == true);
    let mut request = ModelRequest::new(Api::Chat, model, streaming, schema);
    for tool in array_items(&body["tools"]) {
        let function = tool.get("function").unwrap_or(tool);
        request.push_tool(str_field(function, "name"), &function["parameters"]);
    }
    let mut system = Vec::new();
    for message in array_items(&body["messages"]) {
        let text = content_text(&message["content"]);
        match str_field(message, "role") {
            "system" | "developer" => system.push(text),
            "tool" | "function" => request.push_message(MessageRole::Tool, text),
            "assistant" => {
                if !text.is_empty() {
                    request.push_message(MessageRole::Model, text);
                }
                for call in array_items(&message["tool_calls"]) {
                    let function = &call["function"];
                    let line = render_call(str_field(function, "name"), &function["arguments"]);
                    request.push_message(MessageRole::Model, line);
                }
            }
            _ => request.push_message(MessageRole::User, text),
        }
    }
    request.system_prompt = system.join("\n");
    request
}

pub(super) fn error_body(status: u16, message: &str) -> Value {
    let kind = match status {
        400 | 404 | 413 => "invalid_request_error",
        401 | 403 => "authentication_error",
        429 => "rate_limit_exceeded",
        _ => "server_error",
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
}

pub(super) fn encode_whole(head: &ResponseHead, parts: &[ResponsePart], end: ResponseEnd) -> Value {
    let mut message = Map::new();
    message.insert("role".to_owned(), "assistant".into());
    message.insert("content".to_owned(), Value::Null);
    let mut calls = Vec::new();
    for part in merge_parts(parts) {
        match part {
            ResponsePart::Text(text) => append_text(&mut message, "content", text),
            ResponsePart::Think(text) => append_text(&mut message, "reasoning_content", text),
            ResponsePart::Refusal(text) => append_text(&mut message, "refusal", text),
            ResponsePart::Call(call) => calls.push(tool_call_json(head, calls.len(), &call)),
        }
    }
    let finish = finish_reason(end.finish_reason, !calls.is_empty());
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into());
    }
    json!({
        "id": format!("chatcmpl-{}", head.number),
        "object": "chat.completion",
        "created": CREATED_AT,
        "model": head.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage_json(end),
    })
}

fn append_text(message: &mut Map<String, Value>, field: &str, text: String) {
    let before = message.get(field).and_then(Value::as_str).unwrap_or("");
    let text = format!("{before}{text}");
    message.insert(field.to_owned(), text.into());
}

fn usage_json(end: ResponseEnd) -> Value {
    json!({
        "prompt_tokens": end.usage.input,
        "completion_tokens": end.usage.output,
        "total_tokens": end.usage.input + end.usage.output,
    })
}

fn finish_reason(stop: FinishReason, calls: bool) -> &'static str {
    match stop {
        FinishReason::Finished if calls => "tool_calls",
        FinishReason::Finished => "stop",
        FinishReason::Length => "length",
        FinishReason::Refused => "content_filter",
    }
}

fn tool_call_json(head: &ResponseHead, index: usize, call: &ToolCall) -> Value {
    json!({
        "id": format!("call_{}_{index}", head.number),
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments_text()},
    })
}

pub(super) struct ChatEncoder {
    head: ResponseHead,
    call_count: usize,
}

impl ChatEncoder {
    pub(super) fn new(head: ResponseHead) -> Self {
        Self {
            head,
            call_count: 0,
        }
    }

    fn chunk(&self, choices: Value, usage: Option<Value>) -> Bytes {
        let mut chunk = json!({
            "id": format!("chatcmpl-{}", self.head.number),
            "object": "chat.completion.chunk",
            "created": CREATED_AT,
            "model": self.head.model,
            "choices": choices,
        });
        if let Some(usage) = usage {
            chunk["usage"] = usage;
        }
        sse_event(None, &chunk)
    }

    fn delta_chunk(&self, delta: Value, finish: Option<&str>) -> Bytes {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        self.chunk(json!([choice]), None)
    }
}

impl StreamEncoder for ChatEncoder {
    fn encode_start(&mut self) -> Vec<Bytes> {
        vec![self.delta_chunk(json!({"role": "assistant", "content": ""}), None)]
    }

    fn encode_part(&mut self, part: &ResponsePart) -> Vec<Bytes> {
        match part {
            ResponsePart::Text(text) => vec![self.delta_chunk(json!({"content": text}), None)],
            ResponsePart::Think(text) => {
                vec![self.delta_chunk(json!({"reasoning_content": text}), None)]
            }
            ResponsePart::Refusal(text) => vec![self.delta_chunk(json!({"refusal": text}), None)],
            ResponsePart::Call(call) => {
                let index = self.call_count;
                self.call_count += 1;
                // Like the API, send the tool name first and the arguments in a second chunk.
                let mut begun = tool_call_json(&self.head, index, call);
                begun["index"] = index.into();
                begun["function"]["arguments"] = "".into();
                let arguments =
                    json!({"index": index, "function": {"arguments": call.arguments_text()}});
                vec![
                    self.delta_chunk(json!({"tool_calls": [begun]}), None),
                    self.delta_chunk(json!({"tool_calls": [arguments]}), None),
                ]
            }
        }
    }

    fn encode_end(&mut self, end: ResponseEnd) -> Vec<Bytes> {
        let finish = finish_reason(end.finish_reason, self.call_count > 0);
        vec![
            self.delta_chunk(json!({}), Some(finish)),
            self.chunk(json!([]), Some(usage_json(end))),
            Bytes::from_static(b"data: [DONE]\n\n"),
        ]
    }

    fn encode_error(&mut self, status: u16, message: &str) -> Vec<Bytes> {
        vec![sse_event(None, &error_body(status, message))]
    }
}
