//! Tests that the real APIs would accept every request: odd histories and all options, for models of each generation.

mod server;

use serde_json::json;
use server::{
    assistant, call_for_deltas, document, event_response, picture, request, serve, thought, tool,
    tool_call, tool_result, user,
};
use std::sync::Arc;
use turnery_engine::{Content, Message, MessageStop, RequestFingerprint, ToolSpec};
use turnery_models::{Api, ModelRequest, Thinking, ToolChoice};

const MODELS: &[(Api, &[&str])] = &[
    (
        Api::Anthropic,
        &[
            "claude-3-5-haiku-latest",
            "claude-3-7-sonnet-latest",
            "claude-haiku-4-5",
            "claude-opus-4-6",
            "claude-opus-4-8",
            "claude-sonnet-5",
            "claude-sonnet-5-5",
            "claude-opus-5-5",
            "claude-fable-5",
            "glm-5",
            "kimi-k3",
        ],
    ),
    (
        Api::OpenAi,
        &[
            "gpt-4o",
            "o3",
            "gpt-5",
            "gpt-5.1",
            "gpt-5.6-terra",
            "openai/gpt-oss-120b",
            "anthropic/claude-sonnet-4.5",
            "google/gemini-3-flash-preview",
            "deepseek-v4-pro",
            "kimi-k2.6",
            "qwen3-32b",
        ],
    ),
    (
        Api::OpenAiResponses,
        &[
            "gpt-4o",
            "gpt-4.1",
            "o3",
            "o4-mini",
            "gpt-5",
            "gpt-5-codex",
            "gpt-5-pro",
            "gpt-5.1",
            "gpt-5.6-terra",
        ],
    ),
    (
        Api::Gemini,
        &[
            "gemini-2.0-flash",
            "gemini-2.5-pro",
            "gemini-2.5-flash",
            "gemini-2.5-flash-lite",
            "gemini-3-pro-preview",
            "gemini-3-flash-preview",
            "gemini-3.1-pro-preview",
            "gemini-3.7-flash",
            "gemma-3-27b-it",
        ],
    ),
];

fn opaque(value: serde_json::Value) -> Content {
    Content::Opaque {
        provider: "acme".to_owned(),
        value,
    }
}

/// A message that `model` itself sent, as far as its provider can tell.
fn own(model: &str, content: Vec<Content>) -> Message {
    Message::Assistant {
        content,
        stop: MessageStop::ToolUse,
        model: model.to_owned(),
        provider: "acme".to_owned(),
        usage: None,
        error: None,
        request: Some(RequestFingerprint {
            model: model.to_owned(),
            context: None,
        }),
    }
}

/// Ids and names that no API would mint, in three rounds: of the model itself, of another one, and one cut short.
fn rounds(model: &str) -> Vec<Message> {
    let long = "call_x|fc_y".repeat(12);
    vec![
        Message::User {
            content: vec![
                Content::text("Look."),
                picture(),
                document(),
                Content::text(" \n"),
            ],
        },
        own(
            model,
            vec![
                thought(None),
                Content::text("I look."),
                tool_call("ä b", "read", json!({"path": "a"})),
                tool_call("x", "functions.read:0", json!("{oops")),
                tool_call(&long, "<|channel|> ä", json!([1])),
            ],
        ),
        tool_result(
            &long,
            vec![Content::text("A sky."), picture(), document()],
            true,
        ),
        tool_result("ä b", vec![picture()], false),
        Message::System {
            text: "Careful.".to_owned(),
        },
        assistant(vec![
            thought(Some("c2lnbmVk")),
            opaque(json!({"type": "redacted_thinking", "data": "x9=="})),
            opaque(json!({"type": "reasoning", "summary": [], "encrypted_content": "x9=="})),
            opaque(json!({"thoughtSignature": "x9=="})),
            opaque(json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x9=="}]})),
            tool_call("call_2", "read", json!({})),
        ]),
        tool_result("call_2", Vec::new(), false),
        own(model, vec![thought(None), Content::text(" ")]),
    ]
}

/// Histories that end with results, with the user, and one that begins with an answer.
fn histories(model: &str) -> [Vec<Message>; 4] {
    let all = rounds(model);
    let mut answered = all.clone();
    answered.push(user("And?"));
    let mut headless = answered.clone();
    headless.remove(0);
    [vec![user("Hello?")], all, answered, headless]
}

fn tools() -> Arc<[ToolSpec]> {
    let mut odd = tool("search", "Searches.");
    odd.schema = json!({
        "anyOf": [
            {"type": "object", "properties": {"$query": {"type": ["string", "null"]}, "kind": {"enum": ["", 1]}}},
            {"$ref": "#/$defs/other"},
        ],
        "$defs": {"other": {"type": "object", "properties": null}},
    })
    .into();
    Arc::new([tool("read", "Reads a file."), odd])
}

/// Every combination of the options.
fn requests(model: &str) -> Vec<ModelRequest> {
    let thinking = [
        Thinking::Default,
        Thinking::Off,
        Thinking::Low,
        Thinking::Medium,
        Thinking::High,
    ];
    let choices = [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required];
    let mut requests = Vec::new();
    for history in histories(model) {
        for thinking in thinking {
            for tool_choice in choices {
                for temperature in [None, Some(0.5)] {
                    requests.push(ModelRequest {
                        tools: tools(),
                        tool_choice,
                        thinking,
                        temperature,
                        ..request(history.clone())
                    });
                }
            }
        }
    }
    requests
}

/// Sends all requests to all models of an API. The server judges.
async fn assert_accepted(api: Api) {
    let models = MODELS.iter().filter(|(of, _)| *of == api);
    for model in models.flat_map(|(_, models)| *models) {
        let requests = requests(model);
        let count = requests.len();
        let server = serve(vec![event_response("data: [DONE]\n\n"); count]).await;
        let called = server.model_with_retries(api, model, 0);
        for request in requests {
            // The response is empty; the server fails the test if it refuses the request.
            let _ = call_for_deltas(&*called, request).await;
        }
        assert_eq!(server.bodies().len(), count, "{model}");
    }
}

/// Quirks 2, 7, 9, 16 to 22 and 55.
#[tokio::test]
async fn anthropic_accepts_odd_histories_and_all_options() {
    assert_accepted(Api::Anthropic).await;
}

/// Quirks 10, 14 and 55.
#[tokio::test]
async fn chat_accepts_odd_histories_and_all_options() {
    assert_accepted(Api::OpenAi).await;
}

/// Quirks 3, 15, 29, 30, 32 and 34.
#[tokio::test]
async fn responses_accepts_odd_histories_and_all_options() {
    assert_accepted(Api::OpenAiResponses).await;
}

/// Quirks 26 to 28 and 55.
#[tokio::test]
async fn gemini_accepts_odd_histories_and_all_options() {
    assert_accepted(Api::Gemini).await;
}
