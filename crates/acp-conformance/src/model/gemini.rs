//! Gemini `generateContent`: reading its requests, telling its events.

use super::{
    asked::{Api, Asked, Offered, Voice, call_line, items, text_of, word},
    script::Stop,
    spoken::{Encode, Ending, Head, Part, event, joined},
};
use bytes::Bytes;
use serde_json::{Value, json};

pub(super) fn asked(path: &str, body: &Value) -> Asked {
    let (before, method) = path.rsplit_once(':').unwrap_or((path, ""));
    let model = before.rsplit('/').next().unwrap_or_default();
    let wanted = &body["generationConfig"];
    let mut asked = Asked {
        api: Api::Gemini,
        model: model.to_owned(),
        streaming: method == "streamGenerateContent",
        system: text_of(&body["systemInstruction"]["parts"]),
        said: Vec::new(),
        offered: Vec::new(),
        schema: wanted
            .get("responseJsonSchema")
            .or_else(|| wanted.get("responseSchema"))
            .cloned(),
    };
    for tool in items(&body["tools"]) {
        for function in items(&tool["functionDeclarations"]) {
            let schema = function
                .get("parametersJsonSchema")
                .unwrap_or(&function["parameters"]);
            asked.offered.push(Offered {
                name: word(function, "name").to_owned(),
                namespace: None,
                schema: Some(schema.clone()),
            });
        }
    }
    for content in items(&body["contents"]) {
        let by = if content["role"] == "model" {
            Voice::Model
        } else {
            Voice::User
        };
        for part in items(&content["parts"]) {
            if let Some(call) = part.get("functionCall") {
                asked.say(by, call_line(word(call, "name"), &call["args"]));
            } else if let Some(result) = part.get("functionResponse") {
                asked.say(Voice::Tool, result["response"].to_string());
            } else {
                asked.say(by, text_of(part));
            }
        }
    }
    asked
}

pub(super) fn error(status: u16, message: &str) -> Value {
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

pub(super) fn whole(head: &Head, parts: &[Part], ending: Ending) -> Value {
    let parts: Vec<Value> = joined(parts).iter().map(part_of).collect();
    chunk(head, &parts, Some(ending))
}

fn part_of(part: &Part) -> Value {
    match part {
        Part::Text(text) | Part::Refusal(text) => json!({"text": text}),
        Part::Think(text) => json!({"text": text, "thought": true}),
        Part::Call(call) => {
            json!({"functionCall": {"name": call.name, "args": call.arguments_object()}})
        }
    }
}

fn chunk(head: &Head, parts: &[Value], ending: Option<Ending>) -> Value {
    let mut chunk = json!({
        "candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}],
        "modelVersion": head.model,
        "responseId": format!("resp_{}", head.number),
    });
    if let Some(ending) = ending {
        chunk["candidates"][0]["finishReason"] = match ending.stop {
            Stop::Finished => "STOP",
            Stop::Length => "MAX_TOKENS",
            Stop::Refused => "SAFETY",
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

pub(super) struct Stream {
    head: Head,
}

impl Stream {
    pub(super) fn new(head: Head) -> Self {
        Self { head }
    }
}

impl Encode for Stream {
    fn open(&mut self) -> Vec<Bytes> {
        Vec::new()
    }

    fn part(&mut self, part: &Part) -> Vec<Bytes> {
        vec![event(None, &chunk(&self.head, &[part_of(part)], None))]
    }

    fn close(&mut self, ending: Ending) -> Vec<Bytes> {
        let last = chunk(&self.head, &[json!({"text": ""})], Some(ending));
        vec![event(None, &last)]
    }

    fn fail(&mut self, status: u16, message: &str) -> Vec<Bytes> {
        vec![event(None, &error(status, message))]
    }
}
