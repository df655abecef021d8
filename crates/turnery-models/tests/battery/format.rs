//! Writes streams and reads requests of each format.

use serde_json::{Value, json};
use turnery_models::Api;

/// A format that models are called in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Anthropic,
    Chat,
    Responses,
    Gemini,
}

/// Content of a streamed response. Texts are given in the fragments that arrive.
#[derive(Clone, Copy)]
pub(crate) enum Item<'a> {
    Thinking(&'a [&'a str]),
    Text(&'a [&'a str]),
    /// A call with its id, name and arguments.
    Call(&'a str, &'a str, &'a [&'a str]),
}

/// End of a streamed response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Stop,
    Length,
    Filter,
}

impl Format {
    pub(crate) const ALL: [Self; 4] = [Self::Anthropic, Self::Chat, Self::Responses, Self::Gemini];

    pub(crate) fn api(self) -> Api {
        match self {
            Self::Anthropic => Api::Anthropic,
            Self::Chat => Api::OpenAi,
            Self::Responses => Api::OpenAiResponses,
            Self::Gemini => Api::Gemini,
        }
    }

    /// Returns a model that thinks and takes images.
    pub(crate) fn model(self) -> &'static str {
        match self {
            Self::Anthropic => "claude-opus-4-8",
            Self::Chat => "qwen-vl",
            Self::Responses => "gpt-5.1",
            Self::Gemini => "gemini-3-flash-preview",
        }
    }

    /// Returns the path of a base URL.
    pub(crate) fn base_path(self) -> &'static str {
        match self {
            Self::Anthropic => "",
            Self::Chat | Self::Responses => "/v1",
            Self::Gemini => "/v1beta",
        }
    }

    /// Returns the path of a request below the base URL.
    pub(crate) fn call_path(self) -> &'static str {
        match self {
            Self::Anthropic => "/v1/messages",
            Self::Chat => "/chat/completions",
            Self::Responses => "/responses",
            Self::Gemini => "/models/gemini-3-flash-preview:streamGenerateContent?alt=sse",
        }
    }

    /// Returns a stream with one text.
    pub(crate) fn text(self, text: &str) -> String {
        self.stream(&[Item::Text(&[text])], End::Stop)
    }

    /// Returns a stream with this content.
    pub(crate) fn stream(self, items: &[Item<'_>], end: End) -> String {
        let mut events = self.start();
        for (index, item) in items.iter().enumerate() {
            events.extend(match self {
                Self::Anthropic => anthropic_item(index, *item),
                Self::Chat => chat_item(index, *item),
                Self::Responses => responses_item(index, *item),
                Self::Gemini => gemini_item(*item),
            });
        }
        let has_calls = items.iter().any(|item| matches!(item, Item::Call(..)));
        events.extend(self.end(end, has_calls));
        to_stream(&events)
    }

    /// Returns events that say nothing and must not disturb.
    pub(crate) fn noise(self) -> Vec<&'static str> {
        let mut noise = vec!["", "   "];
        noise.extend(match self {
            Self::Anthropic => [
                r#"{"type":"ping"}"#,
                r#"{"type":"new_event","index":0,"delta":{"new":[1]}}"#,
                r#"{"type":"message_delta","delta":{},"usage":null}"#,
            ],
            Self::Chat => [
                r#"{"choices":[]}"#,
                r#"{"choices":[{"index":0,"delta":{"role":""}}]}"#,
                r#"{"object":"chat.completion.chunk","model":"","model":""}"#,
            ],
            Self::Responses => [
                r#"{"type":"response.in_progress","response":{}}"#,
                r#"{"type":"response.new_event","item":7,"delta":{"a":1}}"#,
                r#"{"type":"keepalive","sequence_number":3}"#,
            ],
            Self::Gemini => [
                "{}",
                r#"{"candidates":[]}"#,
                r#"{"candidates":[{"content":{"role":"model"}}],"newField":[1]}"#,
            ],
        });
        noise
    }

    /// Returns an event that breaks the format.
    pub(crate) fn malformed(self) -> &'static str {
        match self {
            Self::Anthropic => {
                r#"{"type":"content_block_delta","index":9,"delta":{"type":"text_delta","text":"x"}}"#
            }
            Self::Chat => r#"{"choices":[{"delta":{"content":5}}]}"#,
            Self::Responses => r#"{"type":"response.output_text.delta","delta":7}"#,
            Self::Gemini => r#"{"candidates":[{"content":{"parts":7}}]}"#,
        }
    }

    fn start(self) -> Vec<Value> {
        match self {
            Self::Anthropic => vec![json!({"type": "message_start", "message": {
                "id": "msg_1", "model": "served", "usage": {
                    "input_tokens": 36, "cache_read_input_tokens": 64, "output_tokens": 1}}})],
            Self::Chat => vec![json!({"model": "served", "choices": [
                {"index": 0, "delta": {"role": "assistant", "content": ""}}]})],
            Self::Responses => {
                vec![json!({"type": "response.created", "response": {"id": "resp_1"}})]
            }
            Self::Gemini => Vec::new(),
        }
    }

    /// Returns the end: 100 tokens of input, 64 of them from the cache, and 20 of output, 8 of them thoughts.
    fn end(self, end: End, has_calls: bool) -> Vec<Value> {
        let pick = |stop: &'static str, call, length, filter| match end {
            End::Stop if has_calls => call,
            End::Stop => stop,
            End::Length => length,
            End::Filter => filter,
        };
        match self {
            Self::Anthropic => vec![
                json!({"type": "message_delta",
                    "delta": {"stop_reason": pick("end_turn", "tool_use", "max_tokens", "refusal")},
                    "usage": {"output_tokens": 20, "output_tokens_details": {"thinking_tokens": 8}}}),
                json!({"type": "message_stop"}),
            ],
            Self::Chat => vec![
                json!({"choices": [{"index": 0, "delta": {},
                    "finish_reason": pick("stop", "tool_calls", "length", "content_filter")}]}),
                json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20,
                    "total_tokens": 120, "prompt_tokens_details": {"cached_tokens": 64},
                    "completion_tokens_details": {"reasoning_tokens": 8}}}),
            ],
            Self::Responses => {
                let reason = pick("", "", "max_output_tokens", "content_filter");
                let status = match reason {
                    "" => "completed",
                    _ => "incomplete",
                };
                vec![json!({"type": format!("response.{status}"), "response": {
                    "status": status, "model": "served",
                    "incomplete_details": (!reason.is_empty()).then(|| json!({"reason": reason})),
                    "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 64},
                        "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 8},
                        "total_tokens": 120}}})]
            }
            Self::Gemini => vec![json!({"modelVersion": "served",
                "candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": ""}]},
                    "finishReason": pick("STOP", "STOP", "MAX_TOKENS", "SAFETY")}],
                "usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 64,
                    "candidatesTokenCount": 12, "thoughtsTokenCount": 8, "totalTokenCount": 120}})],
        }
    }

    /// Returns a conversation as it was sent, in one form for all formats: `user TEXT`, `assistant TEXT`, `call ID NAME`,
    /// `result ID TEXT`, `image` and `document`, each text in an entry of its own.
    pub(crate) fn outline(self, body: &Value) -> Vec<String> {
        let mut lines = Vec::new();
        for message in self.messages(body) {
            match self {
                Self::Anthropic => anthropic_outline(message, &mut lines),
                Self::Chat => chat_outline(message, &mut lines),
                Self::Responses => responses_outline(message, &mut lines),
                Self::Gemini => gemini_outline(message, &mut lines),
            }
        }
        lines
    }

    /// Returns the messages or items of a request.
    fn messages(self, body: &Value) -> &[Value] {
        let list = match self {
            Self::Anthropic | Self::Chat => &body["messages"],
            Self::Responses => &body["input"],
            Self::Gemini => &body["contents"],
        };
        list.as_array().expect("messages")
    }

    /// Returns whether a request forbids calls or demands one; `None` if the model may choose.
    pub(crate) fn tool_choice(self, body: &Value) -> Option<&str> {
        let word = match self {
            Self::Anthropic => &body["tool_choice"]["type"],
            Self::Chat | Self::Responses => &body["tool_choice"],
            Self::Gemini => &body["toolConfig"]["functionCallingConfig"]["mode"],
        };
        match word.as_str() {
            Some("any" | "ANY") => Some("required"),
            Some("NONE") => Some("none"),
            word => word,
        }
    }

    /// Returns the name of the first tool of a request.
    pub(crate) fn first_tool(self, body: &Value) -> &Value {
        match self {
            Self::Anthropic | Self::Responses => &body["tools"][0]["name"],
            Self::Chat => &body["tools"][0]["function"]["name"],
            Self::Gemini => &body["tools"][0]["functionDeclarations"][0]["name"],
        }
    }
}

/// Returns a stream of these events.
pub(crate) fn to_stream(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect()
}

fn anthropic_item(index: usize, item: Item<'_>) -> Vec<Value> {
    let (start, kind, field, fragments) = match item {
        Item::Thinking(texts) => (
            json!({"type": "thinking", "thinking": ""}),
            "thinking_delta",
            "thinking",
            texts,
        ),
        Item::Text(texts) => (
            json!({"type": "text", "text": ""}),
            "text_delta",
            "text",
            texts,
        ),
        Item::Call(id, name, args) => (
            json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
            "input_json_delta",
            "partial_json",
            args,
        ),
    };
    let mut events =
        vec![json!({"type": "content_block_start", "index": index, "content_block": start})];
    events.extend(fragments.iter().map(|text| {
        json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, field: text}})
    }));
    events.push(json!({"type": "content_block_stop", "index": index}));
    events
}

fn chat_item(index: usize, item: Item<'_>) -> Vec<Value> {
    let chunk = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
    match item {
        Item::Thinking(texts) => texts
            .iter()
            .map(|text| chunk(json!({"reasoning_content": text})))
            .collect(),
        Item::Text(texts) => texts
            .iter()
            .map(|text| chunk(json!({"content": text})))
            .collect(),
        Item::Call(id, name, args) => {
            let start = json!({"index": index, "id": id, "type": "function",
                "function": {"name": name, "arguments": ""}});
            let fragment = |text: &&str| json!({"index": index, "function": {"arguments": text}});
            [start]
                .into_iter()
                .chain(args.iter().map(fragment))
                .map(|call| chunk(json!({"tool_calls": [call]})))
                .collect()
        }
    }
}

fn responses_item(index: usize, item: Item<'_>) -> Vec<Value> {
    let delta = |kind: &str, text: &str| json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": text});
    let event = |kind: &str, item: Value| json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item});
    let (kind, fragments, done) = match item {
        Item::Thinking(texts) => (
            "reasoning_summary_text",
            texts,
            json!({"type": "reasoning", "encrypted_content": "gAAA",
                "summary": [{"type": "summary_text", "text": texts.concat()}]}),
        ),
        Item::Text(texts) => (
            "output_text",
            texts,
            json!({"type": "message", "role": "assistant",
                "content": [{"type": "output_text", "text": texts.concat()}]}),
        ),
        Item::Call(id, name, args) => (
            "function_call_arguments",
            args,
            json!({"type": "function_call", "call_id": id, "name": name,
                "arguments": args.concat()}),
        ),
    };
    let mut started = done.clone();
    match item {
        Item::Thinking(_) => started["summary"] = json!([]),
        Item::Text(_) => started["content"] = json!([]),
        Item::Call(..) => started["arguments"] = json!(""),
    }
    [event("added", started)]
        .into_iter()
        .chain(fragments.iter().map(|text| delta(kind, text)))
        .chain([event("done", done)])
        .collect()
}

fn gemini_item(item: Item<'_>) -> Vec<Value> {
    let chunk = |part: Value| json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]});
    match item {
        Item::Thinking(texts) => texts
            .iter()
            .map(|text| chunk(json!({"text": text, "thought": true})))
            .collect(),
        Item::Text(texts) => texts
            .iter()
            .map(|text| chunk(json!({"text": text})))
            .collect(),
        // A call comes whole, without a fragment if it has no arguments.
        Item::Call(id, name, args) => {
            let mut call = json!({"name": name});
            if !id.is_empty() {
                call["id"] = json!(id);
            }
            if !args.is_empty() {
                call["args"] = serde_json::from_str(&args.concat()).expect("whole arguments");
            }
            vec![chunk(json!({"functionCall": call}))]
        }
    }
}

fn text_of(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn anthropic_outline(message: &Value, lines: &mut Vec<String>) {
    for block in list(&message["content"]) {
        match text_of(&block["type"]) {
            "text" => lines.push(format!(
                "{} {}",
                text_of(&message["role"]),
                text_of(&block["text"])
            )),
            "tool_use" => lines.push(format!(
                "call {} {}",
                text_of(&block["id"]),
                text_of(&block["name"])
            )),
            "tool_result" => {
                let parts = list(&block["content"]).iter();
                let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
                lines.push(format!(
                    "result {} {}",
                    text_of(&block["tool_use_id"]),
                    texts.concat()
                ));
                let files = list(&block["content"]).iter();
                let kinds = files.map(|part| text_of(&part["type"]));
                lines.extend(kinds.filter(|kind| *kind != "text").map(str::to_owned));
            }
            other => lines.push(other.to_owned()),
        }
    }
}

fn chat_outline(message: &Value, lines: &mut Vec<String>) {
    let role = text_of(&message["role"]);
    let lead = match role {
        "system" => return,
        "tool" => format!("result {}", text_of(&message["tool_call_id"])),
        role => role.to_owned(),
    };
    if let Some(text) = message["content"].as_str() {
        lines.push(format!("{lead} {text}"));
    }
    for part in list(&message["content"]) {
        lines.push(match text_of(&part["type"]) {
            "text" => format!("{lead} {}", text_of(&part["text"])),
            "image_url" => "image".to_owned(),
            "file" => "document".to_owned(),
            other => other.to_owned(),
        });
    }
    if message.get("reasoning_content").is_some() {
        lines.push("thinking".to_owned());
    }
    for call in list(&message["tool_calls"]) {
        lines.push(format!(
            "call {} {}",
            text_of(&call["id"]),
            text_of(&call["function"]["name"])
        ));
    }
}

fn responses_outline(item: &Value, lines: &mut Vec<String>) {
    let parts = |lead: &str, content: &Value, lines: &mut Vec<String>| {
        if let Some(text) = content.as_str() {
            lines.push(format!("{lead} {text}"));
        }
        for part in list(content) {
            lines.push(match text_of(&part["type"]) {
                "input_text" => format!("{lead} {}", text_of(&part["text"])),
                "input_image" => "image".to_owned(),
                "input_file" => "document".to_owned(),
                other => other.to_owned(),
            });
        }
    };
    match text_of(&item["type"]) {
        "message" => parts(text_of(&item["role"]), &item["content"], lines),
        "function_call" => lines.push(format!(
            "call {} {}",
            text_of(&item["call_id"]),
            text_of(&item["name"])
        )),
        "function_call_output" => {
            let lead = format!("result {}", text_of(&item["call_id"]));
            parts(&lead, &item["output"], lines);
        }
        "reasoning" => lines.push("thinking".to_owned()),
        other => lines.push(other.to_owned()),
    }
}

fn gemini_outline(content: &Value, lines: &mut Vec<String>) {
    let role = match text_of(&content["role"]) {
        "model" => "assistant",
        role => role,
    };
    for part in list(&content["parts"]) {
        if part["thought"] == true {
            lines.push("thinking".to_owned());
        } else if let Some(text) = part["text"].as_str() {
            lines.push(format!("{role} {text}"));
        } else if let Some(file) = part.get("inlineData") {
            lines.push(file_kind(file));
        } else if let Some(call) = part.get("functionCall") {
            lines.push(format!(
                "call {} {}",
                text_of(&call["id"]),
                text_of(&call["name"])
            ));
        } else if let Some(result) = part.get("functionResponse") {
            let output = &result["response"];
            let text = output["output"].as_str().or(output["error"].as_str());
            lines.push(format!(
                "result {} {}",
                text_of(&result["id"]),
                text.expect("an output")
            ));
            let files = list(&result["parts"]).iter();
            lines.extend(files.map(|file| file_kind(&file["inlineData"])));
        }
    }
}

fn file_kind(file: &Value) -> String {
    match text_of(&file["mimeType"]).starts_with("image/") {
        true => "image".to_owned(),
        false => "document".to_owned(),
    }
}
