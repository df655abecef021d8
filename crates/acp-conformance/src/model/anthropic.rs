//! Parses requests and encodes responses of Anthropic Messages.

use super::{
    encoder::{
        ResponseEnd, ResponseHead, ResponsePart, StreamEncoder, ToolCall, merge_parts, sse_event,
    },
    request::{Api, MessageRole, ModelRequest, array_items, content_text, render_call, str_field},
    script::FinishReason,
};
use bytes::Bytes;
use serde_json::{Value, json};

/// Signature of thinking blocks; agents send it back unchanged.
const THINKING_SIGNATURE: &str = "c2lnbmVk";

pub(super) fn parse_request(body: &Value) -> ModelRequest {
    let schema = body.pointer("/output_config/format/schema");
    let schema = schema.or_else(|| body.pointer("/output_format/schema"));
    let (model, streaming) = (str_field(body, "model"), body["stream"] == true);
    let mut request = ModelRequest::new(Api::Anthropic, model, streaming, schema);
    request.system_prompt = content_text(&body["system"]);
    for tool in array_items(&body["tools"]) {
        request.push_tool(str_field(tool, "name"), &tool["input_schema"]);
    }
    for message in array_items(&body["messages"]) {
        let by = if message["role"] == "assistant" {
            MessageRole::Model
        } else {
            MessageRole::User
        };
        let content = &message["content"];
        if content.is_string() {
            request.push_message(by, content_text(content));
        }
        for block in array_items(content) {
            match str_field(block, "type") {
                "tool_result" => {
                    request.push_message(MessageRole::Tool, content_text(&block["content"]))
                }
                "tool_use" => {
                    request.push_message(by, render_call(str_field(block, "name"), &block["input"]))
                }
                _ => request.push_message(by, content_text(block)),
            }
        }
    }
    request
}

pub(super) fn error_body(status: u16, message: &str) -> Value {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

pub(super) fn encode_whole(head: &ResponseHead, parts: &[ResponsePart], end: ResponseEnd) -> Value {
    let parts = merge_parts(parts);
    let mut content = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        content.push(match part {
            ResponsePart::Text(text) | ResponsePart::Refusal(text) => {
                json!({"type": "text", "text": text})
            }
            ResponsePart::Think(text) => {
                json!({"type": "thinking", "thinking": text, "signature": THINKING_SIGNATURE})
            }
            ResponsePart::Call(call) => json!({
                "type": "tool_use",
                "id": call_id(head, index),
                "name": call.name,
                "input": call.arguments_object(),
            }),
        });
    }
    let calls = parts
        .iter()
        .any(|part| matches!(part, ResponsePart::Call(_)));
    json!({
        "id": format!("msg_{}", head.number),
        "type": "message",
        "role": "assistant",
        "model": head.model,
        "content": content,
        "stop_reason": stop_reason(end.finish_reason, calls),
        "stop_sequence": null,
        "usage": usage_json(end),
    })
}

fn usage_json(end: ResponseEnd) -> Value {
    json!({
        "input_tokens": end.usage.input,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": end.usage.output,
    })
}

fn stop_reason(stop: FinishReason, calls: bool) -> &'static str {
    match stop {
        FinishReason::Finished if calls => "tool_use",
        FinishReason::Finished => "end_turn",
        FinishReason::Length => "max_tokens",
        FinishReason::Refused => "refusal",
    }
}

fn call_id(head: &ResponseHead, block: usize) -> String {
    format!("toolu_{}_{block}", head.number)
}

/// Open content block of a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenBlock {
    None,
    Text,
    Think,
}

pub(super) struct AnthropicEncoder {
    head: ResponseHead,
    open_block: OpenBlock,
    block: usize,
    has_calls: bool,
}

impl AnthropicEncoder {
    pub(super) fn new(head: ResponseHead) -> Self {
        Self {
            head,
            open_block: OpenBlock::None,
            block: 0,
            has_calls: false,
        }
    }

    fn close_block(&mut self, events: &mut Vec<Bytes>) {
        match self.open_block {
            OpenBlock::None => return,
            OpenBlock::Text => {}
            OpenBlock::Think => {
                events.push(self.block_delta_event(
                    json!({"type": "signature_delta", "signature": THINKING_SIGNATURE}),
                ));
            }
        }
        events.push(self.block_stop_event());
        self.open_block = OpenBlock::None;
        self.block += 1;
    }

    fn begin_block(&mut self, open: OpenBlock, block: Value, events: &mut Vec<Bytes>) {
        if self.open_block != open {
            self.close_block(events);
            events.push(self.block_start_event(block));
            self.open_block = open;
        }
    }

    fn block_start_event(&self, block: Value) -> Bytes {
        typed_event(
            json!({"type": "content_block_start", "index": self.block, "content_block": block}),
        )
    }

    fn block_delta_event(&self, delta: Value) -> Bytes {
        typed_event(json!({"type": "content_block_delta", "index": self.block, "delta": delta}))
    }

    fn block_stop_event(&self) -> Bytes {
        typed_event(json!({"type": "content_block_stop", "index": self.block}))
    }

    fn encode_call(&mut self, call: &ToolCall, events: &mut Vec<Bytes>) {
        self.close_block(events);
        let id = call_id(&self.head, self.block);
        events.push(self.block_start_event(
            json!({"type": "tool_use", "id": id, "name": call.name, "input": {}}),
        ));
        let text = call.arguments_object().to_string();
        events.push(
            self.block_delta_event(json!({"type": "input_json_delta", "partial_json": text})),
        );
        events.push(self.block_stop_event());
        self.block += 1;
        self.has_calls = true;
    }
}

impl StreamEncoder for AnthropicEncoder {
    fn encode_start(&mut self) -> Vec<Bytes> {
        let message = json!({
            "id": format!("msg_{}", self.head.number),
            "type": "message",
            "role": "assistant",
            "model": self.head.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": {"input_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1},
        });
        vec![
            typed_event(json!({"type": "message_start", "message": message})),
            typed_event(json!({"type": "ping"})),
        ]
    }

    fn encode_part(&mut self, part: &ResponsePart) -> Vec<Bytes> {
        let mut events = Vec::new();
        match part {
            ResponsePart::Text(text) | ResponsePart::Refusal(text) => {
                self.begin_block(
                    OpenBlock::Text,
                    json!({"type": "text", "text": ""}),
                    &mut events,
                );
                events.push(self.block_delta_event(json!({"type": "text_delta", "text": text})));
            }
            ResponsePart::Think(text) => {
                let block = json!({"type": "thinking", "thinking": "", "signature": ""});
                self.begin_block(OpenBlock::Think, block, &mut events);
                events.push(
                    self.block_delta_event(json!({"type": "thinking_delta", "thinking": text})),
                );
            }
            ResponsePart::Call(call) => self.encode_call(call, &mut events),
        }
        events
    }

    fn encode_end(&mut self, end: ResponseEnd) -> Vec<Bytes> {
        let mut events = Vec::new();
        self.close_block(&mut events);
        events.push(typed_event(json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason(end.finish_reason, self.has_calls), "stop_sequence": null},
            "usage": usage_json(end),
        })));
        events.push(typed_event(json!({"type": "message_stop"})));
        events
    }

    fn encode_error(&mut self, status: u16, message: &str) -> Vec<Bytes> {
        vec![typed_event(error_body(status, message))]
    }
}

/// Encodes an event whose name is its type.
fn typed_event(data: Value) -> Bytes {
    sse_event(data["type"].as_str(), &data)
}
