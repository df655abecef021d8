//! Parses requests and encodes responses of OpenAI Responses.

use super::{
    chat::CREATED_AT,
    encoder::{
        ResponseEnd, ResponseHead, ResponsePart, StreamEncoder, ToolArguments, ToolCall,
        merge_parts, sse_event,
    },
    request::{
        Api, MessageRole, ModelRequest, OfferedTool, array_items, content_text, render_call,
        str_field,
    },
    script::FinishReason,
};
use bytes::Bytes;
use serde_json::{Value, json};
use std::mem::discriminant;

pub(super) fn parse_request(body: &Value) -> ModelRequest {
    let schema = body.pointer("/text/format/schema");
    let (model, streaming) = (str_field(body, "model"), body["stream"] == true);
    let mut request = ModelRequest::new(Api::Responses, model, streaming, schema);
    collect_tools(&body["tools"], None, &mut request.tools);
    let mut system = vec![content_text(&body["instructions"])];
    if body["input"].is_string() {
        request.push_message(MessageRole::User, content_text(&body["input"]));
    }
    for item in array_items(&body["input"]) {
        let kind = item["type"].as_str().unwrap_or("message");
        match kind {
            "message" => {
                let text = content_text(&item["content"]);
                match str_field(item, "role") {
                    "system" | "developer" => system.push(text),
                    "assistant" => request.push_message(MessageRole::Model, text),
                    _ => request.push_message(MessageRole::User, text),
                }
            }
            "function_call" => {
                request.push_message(
                    MessageRole::Model,
                    render_call(str_field(item, "name"), &item["arguments"]),
                );
            }
            "custom_tool_call" => {
                request.push_message(
                    MessageRole::Model,
                    render_call(str_field(item, "name"), &item["input"]),
                );
            }
            "reasoning" => request.push_message(MessageRole::Model, content_text(&item["summary"])),
            _ if kind.ends_with("_output") => {
                request.push_message(MessageRole::Tool, content_text(&item["output"]));
            }
            other => request.push_message(MessageRole::Model, other.to_owned()),
        }
    }
    request.system_prompt = system.join("\n");
    request
}

fn collect_tools(tools: &Value, namespace: Option<&str>, offered: &mut Vec<OfferedTool>) {
    for tool in array_items(tools) {
        let name = str_field(tool, "name");
        let schema = match str_field(tool, "type") {
            "namespace" => {
                collect_tools(&tool["tools"], Some(name), offered);
                continue;
            }
            "function" => Some(tool["parameters"].clone()),
            "custom" => None,
            // Tools that the provider runs are not tools of the agent.
            _ => continue,
        };
        offered.push(OfferedTool {
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
            schema,
        });
    }
}

pub(super) fn encode_whole(head: &ResponseHead, parts: &[ResponsePart], end: ResponseEnd) -> Value {
    let parts = merge_parts(parts);
    let items = parts.iter().enumerate();
    let output = items
        .map(|(index, part)| encode_item(head, index, part))
        .collect();
    final_response_json(head, output, end)
}

/// Returns a completed output item.
fn encode_item(head: &ResponseHead, index: usize, part: &ResponsePart) -> Value {
    match part {
        ResponsePart::Text(_) | ResponsePart::Refusal(_) => json!({
            "id": format!("msg_{}_{index}", head.number),
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [content_part(part)],
        }),
        ResponsePart::Think(_) => json!({
            "id": format!("rs_{}_{index}", head.number),
            "type": "reasoning",
            "summary": [content_part(part)],
        }),
        ResponsePart::Call(call) => call_item(head, index, call),
    }
}

fn call_item(head: &ResponseHead, index: usize, call: &ToolCall) -> Value {
    let call_id = format!("call_{}_{index}", head.number);
    let mut item = match &call.arguments {
        ToolArguments::Object(_) => json!({
            "id": format!("fc_{}_{index}", head.number),
            "type": "function_call",
            "status": "completed",
            "call_id": call_id,
            "name": call.name,
            "arguments": call.arguments_text(),
        }),
        ToolArguments::Text(text) => json!({
            "id": format!("ctc_{}_{index}", head.number),
            "type": "custom_tool_call",
            "status": "completed",
            "call_id": call_id,
            "name": call.name,
            "input": text,
        }),
    };
    if let Some(namespace) = &call.namespace {
        item["namespace"] = namespace.as_str().into();
    }
    item
}

fn content_part(part: &ResponsePart) -> Value {
    match part {
        ResponsePart::Refusal(text) => json!({"type": "refusal", "refusal": text}),
        ResponsePart::Text(text) => {
            json!({"type": "output_text", "text": text, "annotations": []})
        }
        ResponsePart::Think(text) => json!({"type": "summary_text", "text": text}),
        ResponsePart::Call(_) => Value::Null,
    }
}

fn encode_response(head: &ResponseHead, status: &str, output: Vec<Value>) -> Value {
    json!({
        "id": format!("resp_{}", head.number),
        "object": "response",
        "created_at": CREATED_AT,
        "status": status,
        "model": head.model,
        "output": output,
        "parallel_tool_calls": true,
        "tool_choice": "auto",
        "tools": [],
        "error": null,
        "incomplete_details": null,
        "usage": null,
    })
}

fn final_response_json(head: &ResponseHead, output: Vec<Value>, end: ResponseEnd) -> Value {
    let reason = match end.finish_reason {
        FinishReason::Finished => None,
        // A refusal with text is part of the content; without text, the content filter stopped the response.
        FinishReason::Refused if has_refusal(&output) => None,
        FinishReason::Refused => Some("content_filter"),
        FinishReason::Length => Some("max_output_tokens"),
    };
    let status = if reason.is_some() {
        "incomplete"
    } else {
        "completed"
    };
    let mut response = encode_response(head, status, output);
    if let Some(reason) = reason {
        response["incomplete_details"] = json!({"reason": reason});
    }
    response["usage"] = json!({
        "input_tokens": end.usage.input,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": end.usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": end.usage.input + end.usage.output,
    });
    response
}

fn has_refusal(output: &[Value]) -> bool {
    output.iter().any(|item| {
        item.pointer("/content/0/type")
            .is_some_and(|kind| kind == "refusal")
    })
}

/// Event names and JSON members of one kind of streamed content part.
struct PartNames {
    /// Prefix of the names of the events that carry the text; `.delta` or `.done` follows.
    text_event: &'static str,
    /// Prefix of the names of the events that begin and end the part; `.added` or `.done` follows.
    part_event: &'static str,
    /// Member with the index of the part.
    index: &'static str,
    /// Member of the part with its text.
    member: &'static str,
    /// Member of the item with its parts.
    item_member: &'static str,
}

const TEXT: PartNames = PartNames {
    text_event: "response.output_text",
    part_event: "response.content_part",
    index: "content_index",
    member: "text",
    item_member: "content",
};
const REFUSAL: PartNames = PartNames {
    text_event: "response.refusal",
    member: "refusal",
    ..TEXT
};
const SUMMARY: PartNames = PartNames {
    text_event: "response.reasoning_summary_text",
    part_event: "response.reasoning_summary_part",
    index: "summary_index",
    member: "text",
    item_member: "summary",
};

pub(super) struct ResponsesEncoder {
    head: ResponseHead,
    sequence: u64,
    /// Open item that deltas are appended to, as accumulated so far.
    open_part: Option<(ResponsePart, PartNames)>,
    output: Vec<Value>,
}

impl ResponsesEncoder {
    pub(super) fn new(head: ResponseHead) -> Self {
        Self {
            head,
            sequence: 0,
            open_part: None,
            output: Vec::new(),
        }
    }

    fn numbered_event(&mut self, kind: &str, mut data: Value) -> Bytes {
        data["type"] = kind.into();
        data["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        sse_event(Some(kind), &data)
    }

    fn with_item_position(&self, mut data: Value, id: &Value) -> Value {
        data["item_id"] = id.clone();
        data["output_index"] = self.output.len().into();
        data
    }

    /// Closes the open item.
    fn close_item(&mut self, events: &mut Vec<Bytes>) {
        let Some((part, names)) = self.open_part.take() else {
            return;
        };
        let index = self.output.len();
        let item = encode_item(&self.head, index, &part);
        let id = item["id"].clone();
        let content = content_part(&part);
        let text = json!({(names.index): 0, (names.member): content[names.member]});
        let part = json!({(names.index): 0, "part": content});
        for (kind, done) in [(names.text_event, text), (names.part_event, part)] {
            let done = self.with_item_position(done, &id);
            events.push(self.numbered_event(&format!("{kind}.done"), done));
        }
        let done = json!({"output_index": index, "item": item});
        events.push(self.numbered_event("response.output_item.done", done));
        self.output.push(item);
    }

    /// Begins an item with an empty part.
    fn begin_item(&mut self, part: ResponsePart, names: PartNames, events: &mut Vec<Bytes>) {
        self.close_item(events);
        let index = self.output.len();
        let mut item = encode_item(&self.head, index, &part);
        let id = item["id"].clone();
        item[names.item_member] = json!([]);
        if names.item_member == "content" {
            item["status"] = "in_progress".into();
        }
        let added = json!({"output_index": index, "item": item});
        events.push(self.numbered_event("response.output_item.added", added));
        let added = json!({(names.index): 0, "part": content_part(&part)});
        let added = self.with_item_position(added, &id);
        events.push(self.numbered_event(&format!("{}.added", names.part_event), added));
        self.open_part = Some((part, names));
    }

    /// Appends a text to the open item.
    fn push_delta(&mut self, text: &str) -> Option<Bytes> {
        let (part, names) = self.open_part.as_mut()?;
        part.text_mut()?.push_str(text);
        let kind = format!("{}.delta", names.text_event);
        let index = names.index;
        let id = encode_item(&self.head, self.output.len(), part)["id"].clone();
        let mut data = self.with_item_position(json!({"delta": text}), &id);
        data[index] = 0.into();
        Some(self.numbered_event(&kind, data))
    }

    fn encode_call(&mut self, call: &ToolCall, events: &mut Vec<Bytes>) {
        self.close_item(events);
        let index = self.output.len();
        let item = call_item(&self.head, index, call);
        let id = item["id"].clone();
        let text = call.arguments_text();
        let (field, kind) = match call.arguments {
            ToolArguments::Object(_) => ("arguments", "response.function_call_arguments"),
            ToolArguments::Text(_) => ("input", "response.custom_tool_call_input"),
        };
        let mut begun = item.clone();
        begun[field] = "".into();
        begun["status"] = "in_progress".into();
        let added = json!({"output_index": index, "item": begun});
        events.push(self.numbered_event("response.output_item.added", added));
        let delta = self.with_item_position(json!({"delta": text}), &id);
        events.push(self.numbered_event(&format!("{kind}.delta"), delta));
        let mut done = self.with_item_position(json!({}), &id);
        done[field] = text.into();
        events.push(self.numbered_event(&format!("{kind}.done"), done));
        let done = json!({"output_index": index, "item": item});
        events.push(self.numbered_event("response.output_item.done", done));
        self.output.push(item);
    }
}

impl StreamEncoder for ResponsesEncoder {
    fn encode_start(&mut self) -> Vec<Bytes> {
        let begun = json!({"response": encode_response(&self.head, "in_progress", Vec::new())});
        vec![
            self.numbered_event("response.created", begun.clone()),
            self.numbered_event("response.in_progress", begun),
        ]
    }

    fn encode_part(&mut self, part: &ResponsePart) -> Vec<Bytes> {
        let mut events = Vec::new();
        let (names, text) = match part {
            ResponsePart::Text(text) => (TEXT, text),
            ResponsePart::Think(text) => (SUMMARY, text),
            ResponsePart::Refusal(text) => (REFUSAL, text),
            ResponsePart::Call(call) => {
                self.encode_call(call, &mut events);
                return events;
            }
        };
        let open = self.open_part.as_ref().map(|(part, _)| discriminant(part));
        if open != Some(discriminant(part)) {
            let mut empty = part.clone();
            empty.text_mut().map(String::clear);
            self.begin_item(empty, names, &mut events);
        }
        events.extend(self.push_delta(text));
        events
    }

    fn encode_end(&mut self, end: ResponseEnd) -> Vec<Bytes> {
        let mut events = Vec::new();
        self.close_item(&mut events);
        let output = std::mem::take(&mut self.output);
        let response = final_response_json(&self.head, output, end);
        let kind = if response["status"] == "incomplete" {
            "response.incomplete"
        } else {
            "response.completed"
        };
        events.push(self.numbered_event(kind, json!({ "response": response })));
        events
    }

    fn encode_error(&mut self, status: u16, message: &str) -> Vec<Bytes> {
        let code = if status == 429 {
            "rate_limit_exceeded"
        } else {
            "server_error"
        };
        let mut failed = encode_response(&self.head, "failed", Vec::new());
        failed["error"] = json!({"code": code, "message": message});
        vec![self.numbered_event("response.failed", json!({ "response": failed }))]
    }
}
