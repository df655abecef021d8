//! Anthropic Messages: reading its requests, telling its events.

use super::{
    asked::{Api, Asked, Offered, Voice, call_line, items, text_of, word},
    script::Stop,
    spoken::{Called, Encode, Ending, Head, Part, event, joined},
};
use bytes::Bytes;
use serde_json::{Value, json};

/// Stands for what the model thought; agents hand it back as it is.
const SIGNATURE: &str = "c2lnbmVk";

pub(super) fn asked(body: &Value) -> Asked {
    let mut asked = Asked {
        api: Api::Anthropic,
        model: word(body, "model").to_owned(),
        streaming: body["stream"] == true,
        system: text_of(&body["system"]),
        said: Vec::new(),
        offered: Vec::new(),
        schema: body
            .pointer("/output_config/format/schema")
            .or_else(|| body.pointer("/output_format/schema"))
            .cloned(),
    };
    for tool in items(&body["tools"]) {
        asked.offered.push(Offered {
            name: word(tool, "name").to_owned(),
            namespace: None,
            schema: Some(tool["input_schema"].clone()),
        });
    }
    for message in items(&body["messages"]) {
        let by = if message["role"] == "assistant" {
            Voice::Model
        } else {
            Voice::User
        };
        let content = &message["content"];
        if content.is_string() {
            asked.say(by, text_of(content));
        }
        for block in items(content) {
            match word(block, "type") {
                "tool_result" => asked.say(Voice::Tool, text_of(&block["content"])),
                "tool_use" => asked.say(by, call_line(word(block, "name"), &block["input"])),
                _ => asked.say(by, text_of(block)),
            }
        }
    }
    asked
}

pub(super) fn error(status: u16, message: &str) -> Value {
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

pub(super) fn whole(head: &Head, parts: &[Part], ending: Ending) -> Value {
    let parts = joined(parts);
    let mut content = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        content.push(match part {
            Part::Text(text) | Part::Refusal(text) => json!({"type": "text", "text": text}),
            Part::Think(text) => {
                json!({"type": "thinking", "thinking": text, "signature": SIGNATURE})
            }
            Part::Call(call) => json!({
                "type": "tool_use",
                "id": call_id(head, index),
                "name": call.name,
                "input": call.arguments_object(),
            }),
        });
    }
    let calls = parts.iter().any(|part| matches!(part, Part::Call(_)));
    json!({
        "id": format!("msg_{}", head.number),
        "type": "message",
        "role": "assistant",
        "model": head.model,
        "content": content,
        "stop_reason": stop_reason(ending.stop, calls),
        "stop_sequence": null,
        "usage": usage(ending),
    })
}

fn usage(ending: Ending) -> Value {
    json!({
        "input_tokens": ending.usage.input,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": ending.usage.output,
    })
}

fn stop_reason(stop: Stop, calls: bool) -> &'static str {
    match stop {
        Stop::Finished if calls => "tool_use",
        Stop::Finished => "end_turn",
        Stop::Length => "max_tokens",
        Stop::Refused => "refusal",
    }
}

fn call_id(head: &Head, block: usize) -> String {
    format!("toolu_{}_{block}", head.number)
}

/// Which block of the content is open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    None,
    Text,
    Think,
}

pub(super) struct Stream {
    head: Head,
    open: Open,
    block: usize,
    calls: bool,
}

impl Stream {
    pub(super) fn new(head: Head) -> Self {
        Self {
            head,
            open: Open::None,
            block: 0,
            calls: false,
        }
    }

    fn shut(&mut self, events: &mut Vec<Bytes>) {
        match self.open {
            Open::None => return,
            Open::Text => {}
            Open::Think => {
                events.push(self.delta(json!({"type": "signature_delta", "signature": SIGNATURE})));
            }
        }
        events.push(self.stopped());
        self.open = Open::None;
        self.block += 1;
    }

    fn begin(&mut self, open: Open, block: Value, events: &mut Vec<Bytes>) {
        if self.open != open {
            self.shut(events);
            events.push(self.started(block));
            self.open = open;
        }
    }

    fn started(&self, block: Value) -> Bytes {
        tell(json!({"type": "content_block_start", "index": self.block, "content_block": block}))
    }

    fn delta(&self, delta: Value) -> Bytes {
        tell(json!({"type": "content_block_delta", "index": self.block, "delta": delta}))
    }

    fn stopped(&self) -> Bytes {
        tell(json!({"type": "content_block_stop", "index": self.block}))
    }

    fn call(&mut self, call: &Called, events: &mut Vec<Bytes>) {
        self.shut(events);
        let id = call_id(&self.head, self.block);
        events.push(
            self.started(json!({"type": "tool_use", "id": id, "name": call.name, "input": {}})),
        );
        let text = call.arguments_object().to_string();
        events.push(self.delta(json!({"type": "input_json_delta", "partial_json": text})));
        events.push(self.stopped());
        self.block += 1;
        self.calls = true;
    }
}

impl Encode for Stream {
    fn open(&mut self) -> Vec<Bytes> {
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
            tell(json!({"type": "message_start", "message": message})),
            tell(json!({"type": "ping"})),
        ]
    }

    fn part(&mut self, part: &Part) -> Vec<Bytes> {
        let mut events = Vec::new();
        match part {
            Part::Text(text) | Part::Refusal(text) => {
                self.begin(Open::Text, json!({"type": "text", "text": ""}), &mut events);
                events.push(self.delta(json!({"type": "text_delta", "text": text})));
            }
            Part::Think(text) => {
                let block = json!({"type": "thinking", "thinking": "", "signature": ""});
                self.begin(Open::Think, block, &mut events);
                events.push(self.delta(json!({"type": "thinking_delta", "thinking": text})));
            }
            Part::Call(call) => self.call(call, &mut events),
        }
        events
    }

    fn close(&mut self, ending: Ending) -> Vec<Bytes> {
        let mut events = Vec::new();
        self.shut(&mut events);
        events.push(tell(json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason(ending.stop, self.calls), "stop_sequence": null},
            "usage": usage(ending),
        })));
        events.push(tell(json!({"type": "message_stop"})));
        events
    }

    fn fail(&mut self, status: u16, message: &str) -> Vec<Bytes> {
        vec![tell(error(status, message))]
    }
}

/// Each event bears its type as its name, too.
fn tell(data: Value) -> Bytes {
    event(data["type"].as_str(), &data)
}
