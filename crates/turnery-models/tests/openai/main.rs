//! Tests Chat Completions over a real socket, in the variants of compatible servers.

mod failures;
#[path = "../server/mod.rs"]
mod server;
mod tool_calls;
mod usage;
mod variants;

use serde_json::json;
use server::{
    assert_same_when_cut_anywhere, assert_same_when_cut_randomly, assistant, call_for_deltas,
    chunked_response, event_response, hello_request, picture, request, serve, serve_one_connection,
    text_delta, thinking_delta, tool_call, tool_result, without_fingerprint,
};
use turnery_engine::{Content, Message, ModelDelta, ModelStop, Response, Usage};
use turnery_models::{Api, ModelName, ModelRegistry, ProviderConfig, Thinking};

/// A stream of OpenAI or DeepSeek: reasoning, text, two calls by index, usage at the end.
pub(crate) const ANSWER: &str = r#": OPENROUTER PROCESSING

data: {"id":"c1","object":"chat.completion.chunk","model":"m1-0914","choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":"H"},"finish_reason":null}],"usage":null}

data: {"model":"m1-0914","choices":[{"index":0,"delta":{"reasoning_content":"m"}}]}

data: {"model":"m1-0914","choices":[{"index":0,"delta":{"content":"Let me "}}]}

data: {"model":"m1-0914","choices":[{"index":0,"delta":{"content":"\"see\" €"}}]}

data: {"model":"m1-0914","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c_a","type":"function","function":{"name":"read","arguments":""}}]}}]}

data: {"model":"m1-0914","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]}}]}

data: {"model":"m1-0914","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"a\"}"}}]}}]}

data: {"model":"m1-0914","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c_b","type":"function","function":{"name":"list","arguments":"{oops"}}]}}]}

data: {"model":"m1-0914","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"model":"m1-0914","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":8}}}

data: [DONE]

"#;

fn answer() -> Response {
    Response {
        content: vec![
            Content::Thinking {
                text: "Hm".to_owned(),
                signature: None,
            },
            Content::text("Let me \"see\" €"),
            tool_call("c_a", "read", json!({"path": "a"})),
            tool_call("c_b", "list", json!("{oops")),
        ],
        stop: ModelStop::ToolUse,
        raw_stop: Some("tool_calls".to_owned()),
        usage: Some(Usage {
            input: 36,
            output: 20,
            reasoning: 8,
            cache_read: 64,
            cache_write: 0,
        }),
        model: "m1-0914".to_owned(),
        provider: "acme".to_owned(),
        tool_results: Vec::new(),
        request: None,
    }
}

fn deltas() -> Vec<ModelDelta> {
    let args = |block, name: &str, fragment: &str| ModelDelta::ToolCallArgs {
        block,
        name: name.to_owned(),
        fragment: fragment.to_owned(),
    };
    vec![
        thinking_delta(0, "H"),
        thinking_delta(0, "m"),
        text_delta(1, "Let me "),
        text_delta(1, "\"see\" €"),
        args(2, "read", "{\"path\":"),
        args(2, "read", "\"a\"}"),
        args(3, "list", "{oops"),
    ]
}

// proves: TURN-52, TURN-53, TURN-54, TURN-55, LASH-107, LASH-108, LASH-109, LASH-111
// proves: CHAT-72
#[tokio::test]
async fn response_does_not_depend_on_one_cut() {
    assert_same_when_cut_anywhere(Api::OpenAi, "m1", ANSWER, &answer(), &deltas()).await;
}

// proves: CHAT-72
#[test]
fn response_does_not_depend_on_many_cuts() {
    assert_same_when_cut_randomly(Api::OpenAi, "m1", ANSWER, &answer(), &deltas());
}

#[tokio::test]
async fn consecutive_calls_share_a_connection() {
    let server = serve_one_connection(vec![chunked_response(ANSWER); 3]).await;
    let model = server.model(Api::OpenAi, "m1");
    for count in 1..=3 {
        let (response, _) = call_for_deltas(&*model, hello_request()).await;
        assert_eq!(response.map(without_fingerprint), Ok(answer()));
        assert_eq!(server.bodies().len(), count);
        // The rest of the response, which has already arrived, is drained in the background.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
}

// proves: LOOP-43
#[tokio::test]
async fn temperature_is_sent_to_models_that_take_one() {
    for (name, sent) in [
        ("m1", json!(0.25)),
        ("gpt-4o", json!(0.25)),
        ("gpt-5", json!(null)),
    ] {
        let server = serve(vec![event_response(ANSWER)]).await;
        let model = server.model(Api::OpenAi, name);
        let mut request = hello_request();
        request.temperature = Some(0.25);
        call_for_deltas(&*model, request).await.0.unwrap();
        assert_eq!(server.bodies()[0]["temperature"], sent, "{name}");
    }
}

// proves: LASH-43
#[tokio::test]
async fn history_is_sent_completely() {
    let server = serve(vec![event_response(ANSWER)]).await;
    let model = server.model(Api::OpenAi, "m1");
    let mut second = request(vec![
        Message::User {
            content: vec![Content::text("hello"), picture()],
        },
        Message::System {
            text: "Careful.".to_owned(),
        },
        assistant(answer().content),
        tool_result("c_a", vec![picture()], false),
    ]);
    second.thinking = Thinking::Low;
    let response = call_for_deltas(&*model, second).await.0.unwrap();
    let ids: Vec<String> = response
        .calls()
        .map(|call| call.call_id.to_string())
        .collect();
    assert_eq!(
        ids,
        ["call_3", "call_4"],
        "the history has the server's ids already"
    );
    assert_eq!(
        server.bodies()[0],
        json!({
            "model": "m1",
            "stream": true,
            "stream_options": {"include_usage": true},
            "reasoning_effort": "low",
            "tools": [{"type": "function", "function": {"name": "read", "description": "Reads a file.", "parameters": {"type": "object", "properties": {}}}}],
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [
                    {"type": "text", "text": "hello"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
                    {"type": "text", "text": "<system-notice>\nCareful.\n</system-notice>"},
                ]},
                {"role": "assistant", "content": "Let me \"see\" €", "reasoning_content": "Hm", "tool_calls": [
                    {"id": "c_a", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}},
                    {"id": "c_b", "type": "function", "function": {"name": "list", "arguments": "{\"not_an_object\":\"{oops\"}"}},
                ]},
                {"role": "tool", "tool_call_id": "c_a", "content": "(a picture: see the next message)"},
                {"role": "tool", "tool_call_id": "c_b", "content": "No result: the call was cut short."},
                {"role": "user", "content": [
                    {"type": "text", "text": "Pictures that c_a gave:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
                ]},
            ],
        })
    );
    let requests = server.requests.lock().unwrap();
    assert!(
        requests[0]
            .0
            .starts_with("POST /v1/chat/completions HTTP/1.1")
    );
    assert!(requests[0].0.contains("authorization: Bearer sk-test"));
}

/// Ollama at any address has levels for Qwen; other servers of one's own have an argument of its template.
#[tokio::test]
async fn ollama_at_another_port_gets_levels_for_qwen() {
    let effort = json!({"reasoning_effort": "high"});
    let template = json!({"chat_template_kwargs": {"enable_thinking": true}});
    for (provider, expected) in [("ollama", effort), ("desk", template)] {
        let server = serve(vec![event_response(ANSWER)]).await;
        let config = ProviderConfig::new(provider, Api::OpenAi, format!("{}/v1", server.base_url));
        let registry = ModelRegistry::new(vec![config]);
        let model = registry.model(&ModelName::new(provider, "qwen3:8b"));
        let mut request = hello_request();
        request.thinking = Thinking::High;
        let (response, _) = call_for_deltas(&*model.expect("a model"), request).await;
        response.expect("an answer");
        let body = &server.bodies()[0];
        let mut sent = json!({});
        for field in ["reasoning_effort", "chat_template_kwargs"] {
            if let Some(value) = body.get(field) {
                sent[field] = value.clone();
            }
        }
        assert_eq!(sent, expected, "{provider}: {body}");
    }
}
