//! Parses requests and encodes responses of Gemini `generateContent`.

use super::{
    encoder::{ResponseEnd, ResponseHead, ResponsePart, StreamEncoder, merge_parts, sse_event},
    request::{Api, MessageRole, ModelRequest, array_items, content_text, render_call, str_field},
    script::FinishReason,
};
use bytes::Bytes;
use serde_json::{Value, json};

pub(super) fn parse_request(path: &str, body: &Value) -> ModelRequest {
    let (before, method) = path.rsplit_once(':').unwrap_or((path, ""));
    let model = before.rsplit('/').next().unwrap_or_default();
    let wanted = &body["generationConfig"];
    let schema = wanted.get("responseJsonSchema");
    let schema = schema.or_else(|| wanted.get("responseSchema"));
    let streaming = method == "streamGenerateContent";
    let mut request = ModelRequest::new(Api::Gemini, model, streaming, schema);
    request.system_prompt = content_text(&body["systemInstruction"]["parts"]);
    for tool in array_items(&body["tools"]) {
        for function in array_items(&tool["functionDeclarations"]) {
            let schema = function
                .get("parametersJsonSchema")
                .unwrap_or(&function["parameters"]);
            request.push_tool(str_field(function, "name"), schema);
        }
    }
    for content in array_items(&body["contents"]) {
        let by = if content["role"] == "model" {
            MessageRole::Model
        } else {
            MessageRole::User
        };
        for part in array_items(&content["parts"]) {
            if let Some(call) = part.get("functionCall") {
                request.push_message(by, render_call(str_field(call, "name"), &call["args"]));
            } else if let Some(result) = part.get("functionResponse") {
                request.push_message(MessageRole::Tool, result["response"].to_string());
            } else {
                request.push_message(by, content_text(part));
            }
        }
    }
    request
}

pub(super) fn error_body(status: u16, message: &str) -> Value {
    let word = match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status, "message": message, "status": word}})
}

pub(super) fn encode_whole(head: &ResponseHead, parts: &[ResponsePart], end: ResponseEnd) -> Value {
    let parts: Vec<Value> = merge_parts(parts).iter().map(part_json).collect();
    chunk_json(head, &parts, Some(end))
}

fn part_json(part: &ResponsePart) -> Value {
    match part {
        ResponsePart::Text(text) | ResponsePart::Refusal(text) => json!({"text": text}),
        ResponsePart::Think(text) => json!({"text": text, "thought": true}),
        ResponsePart::Call(call) => {
            json!({"functionCall": {"name": call.name, "args": call.arguments_object()}})
        }
    }
}

fn chunk_json(head: &ResponseHead, parts: &[Value], end: Option<ResponseEnd>) -> Value {
    let mut chunk = json!({
        "candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}],
        "modelVersion": head.model,
        "responseId": format!("resp_{}", head.number),
    });
    if let Some(ending) = end {
        chunk["candidates"][0]["finishReason"] = match ending.finish_reason {
            FinishReason::Finished => "STOP",
            FinishReason::Length => "MAX_TOKENS",
            FinishReason::Refused => "SAFETY",
        }
        .into();
        chunk["usageMetadata"] = json!({
            "promptTokenCount": ending.usage.input,
            "candidatesTokenCount": ending.usage.output,
            "totalTokenCount": ending.usage.input + ending.usage.output,
        });
    }
    chunk
}

pub(super) struct GeminiEncoder {
    head: ResponseHead,
}

impl GeminiEncoder {
    pub(super) fn new(head: ResponseHead) -> Self {
        Self { head }
    }
}

impl StreamEncoder for GeminiEncoder {
    fn encode_start(&mut self) -> Vec<Bytes> {
        Vec::new()
    }

    fn encode_part(&mut self, part: &ResponsePart) -> Vec<Bytes> {
        vec![sse_event(
            None,
            &chunk_json(&self.head, &[part_json(part)], None),
        )]
    }

    fn encode_end(&mut self, end: ResponseEnd) -> Vec<Bytes> {
        let last = chunk_json(&self.head, &[json!({"text": ""})], Some(end));
        vec![sse_event(None, &last)]
    }

    fn encode_error(&mut self, status: u16, message: &str) -> Vec<Bytes> {
        vec![sse_event(None, &error_body(status, message))]
    }
}
