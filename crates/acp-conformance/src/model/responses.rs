//! OpenAI Responses: reading its requests, telling its events.

use super::{
    asked::{Api, Asked, Offered, Voice, call_line, items, text_of, word},
    chat::CREATED,
    script::Stop,
    spoken::{Arguments, Called, Encode, Ending, Head, Part, event, joined},
};
use bytes::Bytes;
use serde_json::{Value, json};

pub(super) fn asked(body: &Value) -> Asked {
    let mut asked = Asked {
        api: Api::Responses,
        model: word(body, "model").to_owned(),
        streaming: body["stream"] == true,
        system: String::new(),
        said: Vec::new(),
        offered: Vec::new(),
        schema: body.pointer("/text/format/schema").cloned(),
    };
    offer(&body["tools"], None, &mut asked.offered);
    let mut system = vec![text_of(&body["instructions"])];
    if body["input"].is_string() {
        asked.say(Voice::User, text_of(&body["input"]));
    }
    for item in items(&body["input"]) {
        let kind = item["type"].as_str().unwrap_or("message");
        match kind {
            "message" => {
                let text = text_of(&item["content"]);
                match word(item, "role") {
                    "system" | "developer" => system.push(text),
                    "assistant" => asked.say(Voice::Model, text),
                    _ => asked.say(Voice::User, text),
                }
            }
            "function_call" => {
                asked.say(
                    Voice::Model,
                    call_line(word(item, "name"), &item["arguments"]),
                );
            }
            "custom_tool_call" => {
                asked.say(Voice::Model, call_line(word(item, "name"), &item["input"]));
            }
            "reasoning" => asked.say(Voice::Model, text_of(&item["summary"])),
            _ if kind.ends_with("_output") => {
                asked.say(Voice::Tool, text_of(&item["output"]));
            }
            other => asked.say(Voice::Model, other.to_owned()),
        }
    }
    asked.system = system.join("\n");
    asked
}

fn offer(tools: &Value, namespace: Option<&str>, offered: &mut Vec<Offered>) {
    for tool in items(tools) {
        let name = word(tool, "name");
        let schema = match word(tool, "type") {
            "namespace" => {
                offer(&tool["tools"], Some(name), offered);
                continue;
            }
            "function" => Some(tool["parameters"].clone()),
            "custom" => None,
            // What the provider runs itself is no tool of the agent.
            _ => continue,
        };
        offered.push(Offered {
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
            schema,
        });
    }
}

pub(super) fn whole(head: &Head, parts: &[Part], ending: Ending) -> Value {
    let parts = joined(parts);
    let items = parts.iter().enumerate();
    let output = items.map(|(index, part)| item(head, index, part)).collect();
    ended(head, output, ending)
}

/// An item of the output, when it is done.
fn item(head: &Head, index: usize, part: &Part) -> Value {
    match part {
        Part::Text(_) | Part::Refusal(_) => json!({
            "id": format!("msg_{}_{index}", head.number),
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [content(part)],
        }),
        Part::Think(text) => json!({
            "id": format!("rs_{}_{index}", head.number),
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": text}],
        }),
        Part::Call(call) => call_item(head, index, call),
    }
}

fn call_item(head: &Head, index: usize, call: &Called) -> Value {
    let call_id = format!("call_{}_{index}", head.number);
    let mut item = match &call.arguments {
        Arguments::Fields(_) => json!({
            "id": format!("fc_{}_{index}", head.number),
            "type": "function_call",
            "status": "completed",
            "call_id": call_id,
            "name": call.name,
            "arguments": call.arguments_text(),
        }),
        Arguments::Free(text) => json!({
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

fn content(part: &Part) -> Value {
    match part {
        Part::Refusal(text) => json!({"type": "refusal", "refusal": text}),
        Part::Text(text) | Part::Think(text) => {
            json!({"type": "output_text", "text": text, "annotations": []})
        }
        Part::Call(_) => Value::Null,
    }
}

fn response(head: &Head, status: &str, output: Vec<Value>) -> Value {
    json!({
        "id": format!("resp_{}", head.number),
        "object": "response",
        "created_at": CREATED,
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

fn ended(head: &Head, output: Vec<Value>, ending: Ending) -> Value {
    let reason = match ending.stop {
        Stop::Finished => None,
        // A refusal with words is a part of the content; without any, the filter stepped in.
        Stop::Refused if says_refusal(&output) => None,
        Stop::Refused => Some("content_filter"),
        Stop::Length => Some("max_output_tokens"),
    };
    let status = if reason.is_some() {
        "incomplete"
    } else {
        "completed"
    };
    let mut response = response(head, status, output);
    if let Some(reason) = reason {
        response["incomplete_details"] = json!({"reason": reason});
    }
    response["usage"] = json!({
        "input_tokens": ending.usage.input,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": ending.usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": ending.usage.input + ending.usage.output,
    });
    response
}

fn says_refusal(output: &[Value]) -> bool {
    output.iter().any(|item| {
        item.pointer("/content/0/type")
            .is_some_and(|kind| kind == "refusal")
    })
}

pub(super) struct Stream {
    head: Head,
    sequence: u64,
    /// The item that deltas go to: all of it so far.
    open: Option<Part>,
    output: Vec<Value>,
}

impl Stream {
    pub(super) fn new(head: Head) -> Self {
        Self {
            head,
            sequence: 0,
            open: None,
            output: Vec::new(),
        }
    }

    fn tell(&mut self, kind: &str, mut data: Value) -> Bytes {
        data["type"] = kind.into();
        data["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        event(Some(kind), &data)
    }

    fn within(&self, mut data: Value, id: &Value) -> Value {
        data["item_id"] = id.clone();
        data["output_index"] = self.output.len().into();
        data
    }

    /// The item of the open part ends.
    fn shut(&mut self, events: &mut Vec<Bytes>) {
        let Some(part) = self.open.take() else { return };
        let index = self.output.len();
        let item = item(&self.head, index, &part);
        let id = item["id"].clone();
        match &part {
            Part::Think(text) => {
                let done = self.within(json!({"summary_index": 0, "text": text}), &id);
                events.push(self.tell("response.reasoning_summary_text.done", done));
                let part = json!({"type": "summary_text", "text": text});
                let done = self.within(json!({"summary_index": 0, "part": part}), &id);
                events.push(self.tell("response.reasoning_summary_part.done", done));
            }
            Part::Text(text) => {
                let done = self.within(json!({"content_index": 0, "text": text}), &id);
                events.push(self.tell("response.output_text.done", done));
            }
            Part::Refusal(text) => {
                let done = self.within(json!({"content_index": 0, "refusal": text}), &id);
                events.push(self.tell("response.refusal.done", done));
            }
            Part::Call(_) => {}
        }
        if matches!(part, Part::Text(_) | Part::Refusal(_)) {
            let done = self.within(json!({"content_index": 0, "part": content(&part)}), &id);
            events.push(self.tell("response.content_part.done", done));
        }
        let done = json!({"output_index": index, "item": item});
        events.push(self.tell("response.output_item.done", done));
        self.output.push(item);
    }

    /// An item begins, empty.
    fn begin(&mut self, part: Part, events: &mut Vec<Bytes>) {
        self.shut(events);
        let index = self.output.len();
        let mut item = item(&self.head, index, &part);
        let id = item["id"].clone();
        let field = if matches!(part, Part::Think(_)) {
            "summary"
        } else {
            "content"
        };
        item[field] = json!([]);
        if field == "content" {
            item["status"] = "in_progress".into();
        }
        let added = json!({"output_index": index, "item": item});
        events.push(self.tell("response.output_item.added", added));
        if field == "summary" {
            let part = json!({"type": "summary_text", "text": ""});
            let added = self.within(json!({"summary_index": 0, "part": part}), &id);
            events.push(self.tell("response.reasoning_summary_part.added", added));
        } else {
            let added = self.within(json!({"content_index": 0, "part": content(&part)}), &id);
            events.push(self.tell("response.content_part.added", added));
        }
        self.open = Some(part);
    }

    fn delta(&mut self, kind: &str, at: &str, text: &str, events: &mut Vec<Bytes>) {
        if let Some(Part::Text(all) | Part::Think(all) | Part::Refusal(all)) = &mut self.open {
            all.push_str(text);
        }
        let index = self.output.len();
        let id = self
            .open
            .as_ref()
            .map(|part| item(&self.head, index, part)["id"].clone());
        let mut data = self.within(json!({"delta": text}), &id.unwrap_or_default());
        data[at] = 0.into();
        events.push(self.tell(kind, data));
    }

    fn call(&mut self, call: &Called, events: &mut Vec<Bytes>) {
        self.shut(events);
        let index = self.output.len();
        let item = call_item(&self.head, index, call);
        let id = item["id"].clone();
        let text = call.arguments_text();
        let (field, kind) = match call.arguments {
            Arguments::Fields(_) => ("arguments", "response.function_call_arguments"),
            Arguments::Free(_) => ("input", "response.custom_tool_call_input"),
        };
        let mut begun = item.clone();
        begun[field] = "".into();
        begun["status"] = "in_progress".into();
        let added = json!({"output_index": index, "item": begun});
        events.push(self.tell("response.output_item.added", added));
        let delta = self.within(json!({"delta": text}), &id);
        events.push(self.tell(&format!("{kind}.delta"), delta));
        let mut done = self.within(json!({}), &id);
        done[field] = text.into();
        events.push(self.tell(&format!("{kind}.done"), done));
        let done = json!({"output_index": index, "item": item});
        events.push(self.tell("response.output_item.done", done));
        self.output.push(item);
    }
}

impl Encode for Stream {
    fn open(&mut self) -> Vec<Bytes> {
        let begun = json!({"response": response(&self.head, "in_progress", Vec::new())});
        vec![
            self.tell("response.created", begun.clone()),
            self.tell("response.in_progress", begun),
        ]
    }

    fn part(&mut self, part: &Part) -> Vec<Bytes> {
        let mut events = Vec::new();
        let empty = String::new;
        match part {
            Part::Text(text) => {
                if !matches!(self.open, Some(Part::Text(_))) {
                    self.begin(Part::Text(empty()), &mut events);
                }
                self.delta(
                    "response.output_text.delta",
                    "content_index",
                    text,
                    &mut events,
                );
            }
            Part::Think(text) => {
                if !matches!(self.open, Some(Part::Think(_))) {
                    self.begin(Part::Think(empty()), &mut events);
                }
                let kind = "response.reasoning_summary_text.delta";
                self.delta(kind, "summary_index", text, &mut events);
            }
            Part::Refusal(text) => {
                if !matches!(self.open, Some(Part::Refusal(_))) {
                    self.begin(Part::Refusal(empty()), &mut events);
                }
                self.delta("response.refusal.delta", "content_index", text, &mut events);
            }
            Part::Call(call) => self.call(call, &mut events),
        }
        events
    }

    fn close(&mut self, ending: Ending) -> Vec<Bytes> {
        let mut events = Vec::new();
        self.shut(&mut events);
        let output = std::mem::take(&mut self.output);
        let response = ended(&self.head, output, ending);
        let kind = if response["status"] == "incomplete" {
            "response.incomplete"
        } else {
            "response.completed"
        };
        events.push(self.tell(kind, json!({ "response": response })));
        events
    }

    fn fail(&mut self, status: u16, message: &str) -> Vec<Bytes> {
        let code = if status == 429 {
            "rate_limit_exceeded"
        } else {
            "server_error"
        };
        let mut failed = response(&self.head, "failed", Vec::new());
        failed["error"] = json!({"code": code, "message": message});
        vec![self.tell("response.failed", json!({ "response": failed }))]
    }
}
