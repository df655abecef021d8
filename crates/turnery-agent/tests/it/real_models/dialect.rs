//! Model APIs as a fake server speaks them: where their messages are, and how a response is streamed.

use model_api_rules::ApiFormat;
use serde_json::{Value, json};
use turnery_models::Api;

/// One model API.
pub(crate) struct Dialect {
    pub(crate) api: Api,
    /// Path of the base URL.
    pub(crate) base_path: &'static str,
    /// A model that sees images.
    pub(crate) model: &'static str,
    /// Field of a request that holds the messages.
    pub(crate) list: &'static str,
    /// Text in requests that moves on with each of them.
    pub(crate) moving_mark: Option<&'static str>,
    /// Field of a request that says whether calls are allowed.
    pub(crate) choice: &'static str,
    pub(crate) format: ApiFormat,
    /// Streams a response whose reasoning has this signature.
    pub(crate) render: fn(&ScriptedResponse, &str) -> String,
}

/// All model APIs.
pub(crate) const DIALECTS: &[Dialect] = &[ANTHROPIC, CHAT, RESPONSES, GEMINI];

pub(crate) const ANTHROPIC: Dialect = Dialect {
    api: Api::Anthropic,
    base_path: "",
    model: "claude-opus-4-6",
    list: "messages",
    moving_mark: Some(r#","cache_control":{"type":"ephemeral"}"#),
    choice: "tool_choice",
    format: ApiFormat::Anthropic,
    render: render_anthropic,
};

pub(crate) const CHAT: Dialect = Dialect {
    api: Api::OpenAi,
    base_path: "/v1",
    model: "gpt-4o",
    list: "messages",
    moving_mark: None,
    choice: "tool_choice",
    format: ApiFormat::Chat,
    render: render_chat,
};

pub(crate) const RESPONSES: Dialect = Dialect {
    api: Api::OpenAiResponses,
    base_path: "/v1",
    model: "gpt-5.1",
    list: "input",
    moving_mark: None,
    choice: "tool_choice",
    format: ApiFormat::Responses,
    render: render_responses,
};

pub(crate) const GEMINI: Dialect = Dialect {
    api: Api::Gemini,
    base_path: "/v1beta",
    model: "gemini-3-flash-preview",
    list: "contents",
    moving_mark: None,
    choice: "toolConfig",
    format: ApiFormat::Gemini,
    render: render_gemini,
};

/// A response that a fake server streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScriptedResponse {
    pub(crate) thinking: Option<String>,
    pub(crate) text: String,
    pub(crate) calls: Vec<ScriptedCall>,
    /// Reported tokens of the request and of the response.
    pub(crate) usage: (u64, u64),
    pub(crate) ending: Ending,
}

#[derive(Clone, Debug)]
pub(crate) struct ScriptedCall {
    pub(crate) id: &'static str,
    pub(crate) tool: &'static str,
    /// JSON text.
    pub(crate) args: String,
}

/// How a response ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    #[default]
    Complete,
    /// The connection closes in the middle.
    Cut,
    /// The connection stays open in the middle.
    Held,
    /// An error instead of a response: the request is too long.
    Overflow,
}

impl ScriptedResponse {
    pub(crate) fn text(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            usage: (10, 5),
            ..Self::default()
        }
    }

    /// Returns the events as far as they are sent.
    pub(crate) fn render(&self, dialect: &Dialect, signature: &str) -> String {
        let mut stream = (dialect.render)(self, signature);
        if self.ending != Ending::Complete {
            let events: Vec<&str> = stream.split_inclusive("\n\n").collect();
            stream = events[..events.len().div_ceil(2)].concat();
        }
        stream
    }
}

fn event(data: &Value) -> String {
    let name = data["type"].as_str().unwrap_or_default();
    match name {
        "" => format!("data: {data}\n\n"),
        name => format!("event: {name}\ndata: {data}\n\n"),
    }
}

fn render_anthropic(response: &ScriptedResponse, signature: &str) -> String {
    let (input, output) = response.usage;
    let start = json!({"id": "msg_1", "model": ANTHROPIC.model, "usage": {"input_tokens": input, "output_tokens": 1}});
    let mut events = vec![json!({"type": "message_start", "message": start})];
    let mut index = 0;
    let mut push_block = |start: Value, deltas: &[Value]| {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        for delta in deltas {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
        index += 1;
    };
    if let Some(thinking) = &response.thinking {
        push_block(
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            &[
                json!({"type": "thinking_delta", "thinking": thinking}),
                json!({"type": "signature_delta", "signature": signature}),
            ],
        );
    }
    if !response.text.is_empty() {
        push_block(
            json!({"type": "text", "text": ""}),
            &[json!({"type": "text_delta", "text": response.text})],
        );
    }
    for call in &response.calls {
        push_block(
            json!({"type": "tool_use", "id": call.id, "name": call.tool, "input": {}}),
            &[json!({"type": "input_json_delta", "partial_json": call.args})],
        );
    }
    let reason = match response.calls.is_empty() {
        true => "end_turn",
        false => "tool_use",
    };
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": output}}));
    events.push(json!({"type": "message_stop"}));
    events.iter().map(event).collect()
}

fn render_chat(response: &ScriptedResponse, _: &str) -> String {
    let chunk = |delta: Value, reason: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        event(&json!({"id": "r", "model": CHAT.model, "choices": [choice]}))
    };
    let mut stream = String::new();
    if let Some(thinking) = &response.thinking {
        stream += &chunk(json!({"reasoning_content": thinking}), None);
    }
    if !response.text.is_empty() {
        stream += &chunk(json!({"content": response.text}), None);
    }
    for (index, call) in response.calls.iter().enumerate() {
        let function = json!({"name": call.tool, "arguments": call.args});
        let call = json!({"index": index, "id": call.id, "type": "function", "function": function});
        stream += &chunk(json!({"tool_calls": [call]}), None);
    }
    let reason = match response.calls.is_empty() {
        true => "stop",
        false => "tool_calls",
    };
    stream += &chunk(json!({}), Some(reason));
    let (input, output) = response.usage;
    let usage = json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
    stream += &event(&json!({"id": "r", "model": CHAT.model, "choices": [], "usage": usage}));
    stream + "data: [DONE]\n\n"
}

fn render_responses(response: &ScriptedResponse, signature: &str) -> String {
    let mut events = vec![json!({
        "type": "response.created",
        "response": {"id": "resp_1", "status": "in_progress", "model": RESPONSES.model},
    })];
    let mut index = 0;
    let mut push_item = |item: Value, deltas: &[Value]| {
        let event = |kind: &str| json!({"type": kind, "output_index": index, "item": item});
        events.push(event("response.output_item.added"));
        for delta in deltas {
            let mut delta = delta.clone();
            delta["output_index"] = json!(index);
            events.push(delta);
        }
        events.push(event("response.output_item.done"));
        index += 1;
    };
    if let Some(thinking) = &response.thinking {
        let summary = json!([{"type": "summary_text", "text": thinking}]);
        push_item(
            json!({"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": signature}),
            &[
                json!({"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": thinking}),
            ],
        );
    }
    if !response.text.is_empty() {
        let content = json!([{"type": "output_text", "text": response.text, "annotations": []}]);
        push_item(
            json!({"id": "msg_1", "type": "message", "role": "assistant", "phase": "commentary", "content": content}),
            &[
                json!({"type": "response.output_text.delta", "content_index": 0, "delta": response.text}),
            ],
        );
    }
    for call in &response.calls {
        push_item(
            json!({"id": "fc_1", "type": "function_call", "call_id": call.id, "name": call.tool, "arguments": call.args}),
            &[json!({"type": "response.function_call_arguments.delta", "delta": call.args})],
        );
    }
    let (input, output) = response.usage;
    let usage =
        json!({"input_tokens": input, "output_tokens": output, "total_tokens": input + output});
    events.push(json!({
        "type": "response.completed",
        "response": {"id": "resp_1", "status": "completed", "model": RESPONSES.model, "usage": usage},
    }));
    events.iter().map(event).collect()
}

fn render_gemini(response: &ScriptedResponse, signature: &str) -> String {
    let chunk = |part: Value| {
        let candidate = json!({"content": {"role": "model", "parts": [part]}, "index": 0});
        event(&json!({"candidates": [candidate], "modelVersion": GEMINI.model}))
    };
    let mut stream = String::new();
    let mut signature = response.thinking.is_some().then_some(signature);
    if let Some(thinking) = &response.thinking {
        stream += &chunk(json!({"text": thinking, "thought": true}));
    }
    if !response.text.is_empty() {
        stream += &chunk(json!({"text": response.text}));
    }
    for call in &response.calls {
        // The arguments keep their bytes.
        let args: Box<serde_json::value::RawValue> = serde_json::from_str(&call.args).unwrap();
        let id = json!(call.id);
        let signed = match signature.take() {
            Some(signature) => format!(r#","thoughtSignature":"{signature}""#),
            None => String::new(),
        };
        let part = format!(
            r#"{{"functionCall":{{"id":{id},"name":"{}","args":{}}}{signed}}}"#,
            call.tool,
            args.get()
        );
        stream += &format!(
            "data: {{\"candidates\":[{{\"content\":{{\"role\":\"model\",\"parts\":[{part}]}},\"index\":0}}]}}\n\n"
        );
    }
    if let Some(signature) = signature {
        stream += &chunk(json!({"text": "", "thoughtSignature": signature}));
    }
    let (input, output) = response.usage;
    let usage = json!({"promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output});
    let candidate = json!({"finishReason": "STOP", "index": 0});
    stream += &event(&json!({"candidates": [candidate], "usageMetadata": usage}));
    stream
}
