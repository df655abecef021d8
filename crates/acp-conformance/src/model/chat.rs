//! OpenAI Chat Completions: reading its requests, telling its events.

use super::{
    asked::{Api, Asked, Offered, Voice, call_line, items, text_of, word},
    script::Stop,
    spoken::{Called, Encode, Ending, Head, Part, event, joined},
};
use bytes::Bytes;
use serde_json::{Map, Value, json};

/// When every answer was made: a fixed moment, so that runs are the same.
pub(super) const CREATED: u64 = 1_700_000_000;

pub(super) fn asked(body: &Value) -> Asked {
    let mut asked = Asked {
        api: Api::Chat,
        model: word(body, "model").to_owned(),
        streaming: body["stream"] == true,
        system: String::new(),
        said: Vec::new(),
        offered: Vec::new(),
        schema: body.pointer("/response_format/json_schema/schema").cloned(),
    };
    for tool in items(&body["tools"]) {
        let function = tool.get("function").unwrap_or(tool);
        asked.offered.push(Offered {
            name: word(function, "name").to_owned(),
            namespace: None,
            schema: Some(function["parameters"].clone()),
        });
    }
    let mut system = Vec::new();
    for message in items(&body["messages"]) {
        let text = text_of(&message["content"]);
        match word(message, "role") {
            "system" | "developer" => system.push(text),
            "tool" | "function" => asked.say(Voice::Tool, text),
            "assistant" => {
                if !text.is_empty() {
                    asked.say(Voice::Model, text);
                }
                for call in items(&message["tool_calls"]) {
                    let function = &call["function"];
                    let line = call_line(word(function, "name"), &function["arguments"]);
                    asked.say(Voice::Model, line);
                }
            }
            _ => asked.say(Voice::User, text),
        }
    }
    asked.system = system.join("\n");
    asked
}

pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        400 | 404 | 413 => "invalid_request_error",
        401 | 403 => "authentication_error",
        429 => "rate_limit_exceeded",
        _ => "server_error",
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
}

pub(super) fn whole(head: &Head, parts: &[Part], ending: Ending) -> Value {
    let mut message = Map::new();
    message.insert("role".to_owned(), "assistant".into());
    message.insert("content".to_owned(), Value::Null);
    let mut calls = Vec::new();
    for part in joined(parts) {
        match part {
            Part::Text(text) => append(&mut message, "content", text),
            Part::Think(text) => append(&mut message, "reasoning_content", text),
            Part::Refusal(text) => append(&mut message, "refusal", text),
            Part::Call(call) => calls.push(tool_call(head, calls.len(), &call)),
        }
    }
    let finish = finish_reason(ending.stop, !calls.is_empty());
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into());
    }
    json!({
        "id": format!("chatcmpl-{}", head.number),
        "object": "chat.completion",
        "created": CREATED,
        "model": head.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage(ending),
    })
}

fn append(message: &mut Map<String, Value>, field: &str, text: String) {
    let before = message.get(field).and_then(Value::as_str).unwrap_or("");
    let text = format!("{before}{text}");
    message.insert(field.to_owned(), text.into());
}

fn usage(ending: Ending) -> Value {
    json!({
        "prompt_tokens": ending.usage.input,
        "completion_tokens": ending.usage.output,
        "total_tokens": ending.usage.input + ending.usage.output,
    })
}

fn finish_reason(stop: Stop, calls: bool) -> &'static str {
    match stop {
        Stop::Finished if calls => "tool_calls",
        Stop::Finished => "stop",
        Stop::Length => "length",
        Stop::Refused => "content_filter",
    }
}

fn tool_call(head: &Head, index: usize, call: &Called) -> Value {
    json!({
        "id": format!("call_{}_{index}", head.number),
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments_text()},
    })
}

pub(super) struct Stream {
    head: Head,
    calls: usize,
}

impl Stream {
    pub(super) fn new(head: Head) -> Self {
        Self { head, calls: 0 }
    }

    fn chunk(&self, choices: Value, usage: Option<Value>) -> Bytes {
        let mut chunk = json!({
            "id": format!("chatcmpl-{}", self.head.number),
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": self.head.model,
            "choices": choices,
        });
        if let Some(usage) = usage {
            chunk["usage"] = usage;
        }
        event(None, &chunk)
    }

    fn delta(&self, delta: Value, finish: Option<&str>) -> Bytes {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        self.chunk(json!([choice]), None)
    }
}

impl Encode for Stream {
    fn open(&mut self) -> Vec<Bytes> {
        vec![self.delta(json!({"role": "assistant", "content": ""}), None)]
    }

    fn part(&mut self, part: &Part) -> Vec<Bytes> {
        match part {
            Part::Text(text) => vec![self.delta(json!({"content": text}), None)],
            Part::Think(text) => vec![self.delta(json!({"reasoning_content": text}), None)],
            Part::Refusal(text) => vec![self.delta(json!({"refusal": text}), None)],
            Part::Call(call) => {
                let index = self.calls;
                self.calls += 1;
                // As the API does it: who is called comes first, with what comes after.
                let mut begun = tool_call(&self.head, index, call);
                begun["index"] = index.into();
                begun["function"]["arguments"] = "".into();
                let arguments =
                    json!({"index": index, "function": {"arguments": call.arguments_text()}});
                vec![
                    self.delta(json!({"tool_calls": [begun]}), None),
                    self.delta(json!({"tool_calls": [arguments]}), None),
                ]
            }
        }
    }

    fn close(&mut self, ending: Ending) -> Vec<Bytes> {
        let finish = finish_reason(ending.stop, self.calls > 0);
        vec![
            self.delta(json!({}), Some(finish)),
            self.chunk(json!([]), Some(usage(ending))),
            Bytes::from_static(b"data: [DONE]\n\n"),
        ]
    }

    fn fail(&mut self, status: u16, message: &str) -> Vec<Bytes> {
        vec![event(None, &error(status, message))]
    }
}
