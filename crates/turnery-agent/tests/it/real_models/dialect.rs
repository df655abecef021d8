//! Model APIs as a fake server speaks them: where their messages are, and how a response is streamed.

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
    /// True if reasoning is sent back in all rounds.
    pub(crate) keeps_reasoning: bool,
    pub(crate) render: fn(&ScriptedResponse) -> String,
}

/// All model APIs.
pub(crate) const DIALECTS: &[Dialect] = &[ANTHROPIC, CHAT];

pub(crate) const ANTHROPIC: Dialect = Dialect {
    api: Api::Anthropic,
    base_path: "",
    model: "claude-opus-4-6",
    list: "messages",
    moving_mark: Some(r#","cache_control":{"type":"ephemeral"}"#),
    keeps_reasoning: true,
    render: render_anthropic,
};

pub(crate) const CHAT: Dialect = Dialect {
    api: Api::OpenAi,
    base_path: "/v1",
    model: "gpt-4o",
    list: "messages",
    moving_mark: None,
    keeps_reasoning: false,
    render: render_chat,
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
    pub(crate) fn render(&self, dialect: &Dialect) -> String {
        let mut stream = (dialect.render)(self);
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

fn render_anthropic(response: &ScriptedResponse) -> String {
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
                json!({"type": "signature_delta", "signature": "c2lnbmVk"}),
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

fn render_chat(response: &ScriptedResponse) -> String {
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
