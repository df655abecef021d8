//! Tests the requests to the hosts of the table, which cannot be reached over loopback under their names.

mod cache_marks;
mod history;
mod hosts;
mod long_arguments;
mod parameters;
mod reasoning;

use super::OpenAi;
use crate::{
    ModelInfo, ModelName, ModelRequest, Thinking, ToolChoice, context_hash::fingerprint,
    dialect::ApiDialect as _, history::ReasoningScope,
};
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_engine::{
    Content, ImageData, LlmMessage, Message, MessageId, MessageStop, ResponseLimits, ToolCall,
    ToolSpec,
};

const OPENAI: &str = "https://api.openai.com/v1";
const AZURE: &str = "https://acme.openai.azure.com/openai/v1";
const OPENROUTER: &str = "https://openrouter.ai/api/v1";
const DEEPSEEK: &str = "https://api.deepseek.com/v1";
const MOONSHOT: &str = "https://api.moonshot.cn/v1";
const MISTRAL: &str = "https://api.mistral.ai/v1";
const GROQ: &str = "https://api.groq.com/openai/v1";
const CEREBRAS: &str = "https://api.cerebras.ai/v1";
const UNKNOWN: &str = "http://127.0.0.1:8000/v1";

fn info(model: &str) -> ModelInfo {
    ModelInfo {
        reasoning: true,
        images: true,
        max_output: 1000,
        ..ModelInfo::new(ModelName::new("acme", model), "openai_chat_completions")
    }
}

fn request(messages: Vec<Message>) -> ModelRequest {
    let with_id = |(at, message)| {
        Arc::new(LlmMessage {
            message_id: MessageId::from(format!("m{at}")),
            turn_id: None,
            message,
        })
    };
    ModelRequest {
        session_id: "s1".into(),
        system: "Be brief.".into(),
        messages: Arc::new(messages.into_iter().enumerate().map(with_id).collect()),
        tools: Arc::new([ToolSpec {
            name: "read".to_owned(),
            description: "Reads a file.".to_owned(),
            schema: json!({"type": "object"}).into(),
        }]),
        tool_choice: ToolChoice::Auto,
        thinking: Thinking::Default,
        temperature: None,
        answer_limits: ResponseLimits::default(),
    }
}

/// Returns the body of a request to `model` on the host, which must accept it.
fn body(host: &str, model: &str, request: &ModelRequest) -> Value {
    let bytes = OpenAi::new(host, model, false).test_body(&info(model), request);
    let body = serde_json::from_slice(&bytes).unwrap();
    hosts::assert_accepted(host, &body);
    body
}

fn messages(host: &str, model: &str, history: Vec<Message>) -> Vec<Value> {
    let body = body(host, model, &request(history));
    body["messages"].as_array().unwrap().clone()
}

fn user(text: &str) -> Message {
    Message::user(text)
}

/// Creates a message of `model`, requested after `before`.
fn assistant(model: &str, before: &[Message], content: Vec<Content>) -> Message {
    let info = info(model);
    Message::Assistant {
        content,
        stop: MessageStop::ToolUse,
        model: model.to_owned(),
        provider: "acme".to_owned(),
        usage: None,
        error: None,
        request: Some(fingerprint(
            &info,
            &request(before.to_vec()),
            ReasoningScope::SameContext,
        )),
    }
}

fn thought(text: &str) -> Content {
    Content::Thinking {
        text: text.to_owned(),
        signature: None,
    }
}

fn opaque(value: Value) -> Content {
    Content::Opaque {
        provider: "acme".to_owned(),
        value,
    }
}

fn call(id: &str) -> Content {
    Content::ToolCall(ToolCall::new(id, "read", json!({"path": "a"})))
}

fn result(id: &str, text: &str) -> Message {
    Message::ToolResult {
        call_id: id.into(),
        tool_name: "read".to_owned(),
        content: vec![Content::text(text)],
        is_error: false,
    }
}

fn picture() -> Content {
    Content::Image(ImageData {
        mime_type: "image/png".to_owned(),
        base64: "QUJD".into(),
    })
}

/// Two rounds: a call with reasoning in each, an answer with reasoning, and a third message of the user.
fn two_rounds(model: &str) -> Vec<Message> {
    let mut history = vec![user("one")];
    let mut add = |content: Vec<Content>, then: Message| {
        let message = assistant(model, &history, content);
        history.extend([message, then]);
    };
    add(vec![thought("Hm"), call("c_1")], result("c_1", "found"));
    add(vec![thought("So"), Content::text("Done.")], user("two"));
    add(vec![thought("Again"), call("c_2")], result("c_2", "found"));
    history
}
