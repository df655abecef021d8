//! Tests Chat Completions over a real socket, in the variants of compatible servers.

mod server;

use serde_json::json;
use server::{
    assert_same_when_cut_anywhere, assert_same_when_cut_randomly, assistant, call_error,
    call_for_deltas, chunked_response, event_response, hello_request, picture, request, serve,
    serve_one_connection, text_delta, tool_call, tool_result,
};
use turnery_engine::{Content, Message, ModelDelta, ModelErrorKind, ModelStop, Response, Usage};
use turnery_models::{Api, Thinking};

/// A stream of OpenAI or DeepSeek: reasoning, text, two calls by index, usage at the end.
const ANSWER: &str = r#": OPENROUTER PROCESSING

data: {"id":"c1","object":"chat.completion.chunk","model":"m1-0914","choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":"Hm"},"finish_reason":null}],"usage":null}

data: {"model":"m1-0914","choices":[{"index":0,"delta":{"content":"Let me \"see\" €"}}]}

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
    }
}

fn deltas() -> Vec<ModelDelta> {
    let args = |block, name: &str, fragment: &str| ModelDelta::ToolCallArgs {
        block,
        name: name.to_owned(),
        fragment: fragment.to_owned(),
    };
    vec![
        ModelDelta::Thinking {
            block: 0,
            text: "Hm".to_owned(),
        },
        text_delta(1, "Let me \"see\" €"),
        args(2, "read", "{\"path\":"),
        args(2, "read", "\"a\"}"),
        args(3, "list", "{oops"),
    ]
}

// proves: TURN-52, TURN-53, TURN-54, TURN-55, LASH-107, LASH-108, LASH-109, LASH-111
#[tokio::test]
async fn response_does_not_depend_on_one_cut() {
    assert_same_when_cut_anywhere(Api::OpenAi, "m1", ANSWER, &answer(), &deltas()).await;
}

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
        assert_eq!(response, Ok(answer()));
        assert_eq!(server.bodies().len(), count);
        // The rest of the response, which has already arrived, is drained in the background.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
}

/// C-31.
// proves: C-31
#[tokio::test]
async fn truncated_stream_is_an_error() {
    let bytes = chunked_response(ANSWER);
    // The blank line after [DONE] and the end of the chunk, "\r\n0\r\n\r\n": the response is complete before
    // them.
    let done = bytes.len() - "\n\r\n0\r\n\r\n".len();
    let server = serve((1..=done).map(|end| bytes[..end].to_vec()).collect()).await;
    let model = server.model_with_retries(Api::OpenAi, "m1", 0);
    for end in 1..=done {
        let kind = call_error(&*model).await.kind;
        assert_eq!(
            kind,
            ModelErrorKind::Network,
            "cut at {end}: a chunk is open"
        );
    }
}

/// LASH-25, C-31: the connection is fine, but the response has no terminal event.
// proves: LASH-25, C-31
#[tokio::test]
async fn response_without_terminal_event_is_unfinished() {
    let reason =
        ANSWER.find("data: {\"model\":\"m1-0914\",\"choices\":[{\"index\":0,\"delta\":{},");
    let reason = reason.expect("the finish_reason");
    let ends: Vec<usize> = (0..=reason).step_by(7).chain([reason]).collect();
    let bodies = ends
        .iter()
        .map(|end| event_response(ANSWER.get(..*end).unwrap_or_default()));
    let server = serve(bodies.collect()).await;
    let model = server.model_with_retries(Api::OpenAi, "m1", 0);
    for end in ends {
        let kind = call_error(&*model).await.kind;
        assert_eq!(kind, ModelErrorKind::Unfinished, "cut at {end}");
    }
}

#[tokio::test]
async fn finish_reason_ends_a_response_without_done() {
    let body =
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"length\"}]}\n\n";
    let server = serve(vec![
        event_response(body),
        event_response(&format!("{body}data: {{\"usa")),
    ])
    .await;
    let model = server.model_with_retries(Api::OpenAi, "m1", 0);
    let response = call_for_deltas(&*model, hello_request()).await.0.unwrap();
    assert_eq!((response.stop, response.usage), (ModelStop::Length, None));
    let error = call_error(&*model).await;
    assert_eq!(
        error.kind,
        ModelErrorKind::Unfinished,
        "what follows broke off"
    );
}

/// Streams of various servers, and the content that they represent.
// proves: LASH-19
#[tokio::test]
async fn server_variants_are_read() {
    let thought = |text: &str| Content::Thinking {
        text: text.to_owned(),
        signature: None,
    };
    let cases: Vec<(&str, &str, Vec<Content>, ModelStop)> = vec![
        (
            "Ollama: whole calls, all with index 0, and `stop`",
            r#"data: {"choices":[{"delta":{"content":"","tool_calls":[{"id":"call_x","index":0,"type":"function","function":{"name":"read","arguments":"{\"p\":1}"}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"id":"call_y","index":0,"function":{"name":"read","arguments":"{\"p\":2}"}}]},"finish_reason":"stop"}]}

data: [DONE]

"#,
            vec![
                tool_call("call_x", "read", json!({"p": 1})),
                tool_call("call_y", "read", json!({"p": 2})),
            ],
            ModelStop::ToolUse,
        ),
        (
            "no index, no id, several calls in one chunk, arguments as an object or absent",
            r#"data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"a","arguments":{"p":1}}},{"function":{"name":"b"}}]},"finish_reason":"tool_calls"}]}

data: [DONE]

"#,
            vec![
                tool_call("call_1", "a", json!({"p": 1})),
                tool_call("call_2", "b", json!({})),
            ],
            ModelStop::ToolUse,
        ),
        (
            "one id twice; the name repeated in each fragment",
            r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{"}},{"index":1,"id":"x","function":{"name":"b","arguments":"{}"}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"}"}}]},"finish_reason":"tool_calls"}]}

"#,
            vec![
                tool_call("x", "a", json!({})),
                tool_call("call_2", "b", json!({})),
            ],
            ModelStop::ToolUse,
        ),
        (
            "llama.cpp: role chunk first, `reasoning_content`",
            r#"data: {"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"object":"chat.completion.chunk"}

data: {"choices":[{"finish_reason":null,"index":0,"delta":{"reasoning_content":"think"}}]}

data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"say"}}]}

data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}]}

data: [DONE]

"#,
            vec![thought("think"), Content::text("say")],
            ModelStop::EndTurn,
        ),
        (
            "OpenRouter: comments, `reasoning`, native_finish_reason",
            r#": OPENROUTER PROCESSING

data: {"provider":"X","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"think","reasoning_details":[{"type":"reasoning.text"}]},"finish_reason":null,"native_finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"content":"say"},"finish_reason":"content_filter","native_finish_reason":"SAFETY"}]}

data: [DONE]

"#,
            vec![thought("think"), Content::text("say")],
            ModelStop::Refusal,
        ),
        (
            "Mistral: content as parts, a whole call",
            r#"data: {"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"think"}]}]}}]}

data: {"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"say"}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"id":"D681PevKs","function":{"name":"a","arguments":"{}"},"index":0}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}

data: [DONE]

"#,
            vec![
                thought("think"),
                Content::text("say"),
                tool_call("D681PevKs", "a", json!({})),
            ],
            ModelStop::ToolUse,
        ),
        (
            "before tool calls: one function call",
            "data: {\"choices\":[{\"delta\":{\"function_call\":{\"name\":\"a\",\"arguments\":\"{\"}}}]}\n\ndata: {\"choices\":[{\"delta\":{\"function_call\":{\"arguments\":\"}\"}},\"finish_reason\":\"function_call\"}]}\n\ndata: [DONE]",
            vec![tool_call("call_1", "a", json!({}))],
            ModelStop::ToolUse,
        ),
    ];
    let server = serve(cases.iter().map(|case| event_response(case.1)).collect()).await;
    let model = server.model_with_retries(Api::OpenAi, "m1", 0);
    for (what, _, content, stop) in cases {
        let response = call_for_deltas(&*model, hello_request())
            .await
            .0
            .expect(what);
        assert_eq!(response.content, content, "{what}");
        assert_eq!(response.stop, stop, "{what}");
    }
}

// proves: LASH-20
#[tokio::test]
async fn error_inside_the_stream_fails_the_call() {
    let server = serve(vec![event_response(
        "data: {\"error\":{\"code\":400,\"message\":\"the request exceeds the available context size\"}}\n\n",
    )])
    .await;
    let model = server.model(Api::OpenAi, "m1");
    let error = call_error(&*model).await;
    assert_eq!(
        (error.kind, error.status),
        (ModelErrorKind::ContextOverflow, Some(400))
    );
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
            "tools": [{"type": "function", "function": {"name": "read", "description": "Reads a file.", "parameters": {"type": "object"}}}],
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
