//! Tests that hosts accept what other models and hosts have left in a conversation.

use super::*;
use crate::providers::host_of;
use model_api_rules::{ApiFormat, ApiRequest, judge};

/// Judges a request by the rules of its host.
pub(super) fn assert_accepted(url: &str, body: &Value) {
    let host = host_of(url);
    let request = ApiRequest {
        host: host.as_deref(),
        ..ApiRequest::new(ApiFormat::Chat, "/chat/completions", body)
    };
    assert_eq!(judge(&request), Ok(()), "{url} refuses {body}");
}

/// Two rounds of the model, one of another model, and a picture and a message of the user after results.
fn mixed_history(model: &str) -> Vec<Message> {
    let mut history = two_rounds(model);
    let long = format!("toolu_{}", "x".repeat(60));
    history.push(assistant(
        "other",
        &[],
        vec![
            thought("Mine"),
            opaque(json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x9=="}]})),
            call(&long),
        ],
    ));
    history.push(Message::ToolResult {
        call_id: long.as_str().into(),
        tool_name: "read".to_owned(),
        content: vec![picture()],
        is_error: false,
    });
    history.push(user("three"));
    history
}

/// Quirks 1, 3, 6, 23, 24, 36 and 58.
#[test]
fn hosts_accept_a_mixed_history_with_all_options() {
    for (host, model) in [
        (OPENAI, "o3"),
        (OPENAI, "gpt-5-chat-latest"),
        (OPENAI, "gpt-5"),
        (OPENAI, "gpt-5.4"),
        (OPENAI, "gpt-5.6-terra"),
        (AZURE, "gpt-5.1"),
        (MISTRAL, "mistral-large-latest"),
        (MISTRAL, "magistral-medium-latest"),
        (GROQ, "openai/gpt-oss-120b"),
        (GROQ, "qwen/qwen3-32b"),
        (CEREBRAS, "zai-glm-4.7"),
        (DEEPSEEK, "deepseek-v4-pro"),
        (DEEPSEEK, "deepseek-chat"),
        (MOONSHOT, "kimi-k2.6"),
        (MOONSHOT, "kimi-k3"),
        (OPENROUTER, "anthropic/claude-opus-4.8"),
        (OPENROUTER, "deepseek/deepseek-v4-pro"),
        (UNKNOWN, "qwen3"),
    ] {
        for thinking in [Thinking::Default, Thinking::Off, Thinking::High] {
            for tool_choice in [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required] {
                for temperature in [None, Some(0.5)] {
                    let request = ModelRequest {
                        thinking,
                        tool_choice,
                        temperature,
                        ..request(mixed_history(model))
                    };
                    body(host, model, &request);
                }
            }
        }
    }
}
