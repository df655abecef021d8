//! Tests Anthropic Messages over a real socket: parsed responses, errors and requests.

mod server;

use serde_json::json;
use server::{
    assert_same_when_cut_anywhere, assert_same_when_cut_randomly, assistant, call_error,
    call_for_deltas, event_response, hello_request, picture, request, serve, text_delta, tool_call,
    tool_result, user,
};
use turnery_engine::{Content, Message, ModelDelta, ModelErrorKind, ModelStop, Response, Usage};
use turnery_models::{Api, Thinking};

const ANSWER: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":30,"cache_read_input_tokens":400,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB+/=="}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"x9"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Let me \"see\" €"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\"a\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":57}}

event: message_stop
data: {"type":"message_stop"}

"#;

fn answer() -> Response {
    Response {
        content: vec![
            Content::Thinking {
                text: "Hm".to_owned(),
                signature: Some("EqQB+/==".to_owned()),
            },
            Content::Opaque {
                provider: "acme".to_owned(),
                value: json!({"type": "redacted_thinking", "data": "x9"}),
            },
            Content::text("Let me \"see\" €"),
            tool_call("toolu_1", "read", json!({"path": "a"})),
        ],
        stop: ModelStop::ToolUse,
        raw_stop: Some("tool_use".to_owned()),
        usage: Some(Usage {
            input: 12,
            output: 57,
            reasoning: 0,
            cache_read: 400,
            cache_write: 30,
        }),
        model: "claude-x".to_owned(),
        provider: "acme".to_owned(),
        tool_results: Vec::new(),
    }
}

fn deltas() -> Vec<ModelDelta> {
    let args = |fragment: &str| ModelDelta::ToolCallArgs {
        block: 3,
        name: "read".to_owned(),
        fragment: fragment.to_owned(),
    };
    vec![
        ModelDelta::Thinking {
            block: 0,
            text: "Hm".to_owned(),
        },
        text_delta(2, "Let me \"see\" €"),
        args("{\"path\":"),
        args("\"a\"}"),
    ]
}

// proves: TURN-52, TURN-53, TURN-54, TURN-55, LASH-107, LASH-108, LASH-109, LASH-110
#[tokio::test]
async fn response_does_not_depend_on_one_cut() {
    assert_same_when_cut_anywhere(
        Api::Anthropic,
        "claude-sonnet-4-5",
        ANSWER,
        &answer(),
        &deltas(),
    )
    .await;
}

#[test]
fn response_does_not_depend_on_many_cuts() {
    assert_same_when_cut_randomly(
        Api::Anthropic,
        "claude-sonnet-4-5",
        ANSWER,
        &answer(),
        &deltas(),
    );
}

/// LASH-25, C-31: within the head the connection is lost; after it, the response lacks its terminal event.
// proves: LASH-25, C-31
#[tokio::test]
async fn truncated_stream_is_an_error() {
    // The last event is complete once its closing brace has arrived.
    let bytes = event_response(ANSWER.trim_end());
    let head = event_response("").len();
    let ends: Vec<usize> = (1..bytes.len()).collect();
    let server = serve(ends.iter().map(|end| bytes[..*end].to_vec()).collect()).await;
    let model = server.model_with_retries(Api::Anthropic, "claude-sonnet-4-5", 0);
    for end in ends {
        let kind = call_error(&*model).await.kind;
        let expected = match end < head {
            true => ModelErrorKind::Network,
            false => ModelErrorKind::Unfinished,
        };
        assert_eq!(kind, expected, "cut at {end}");
    }
}

// proves: R9, TURN-53
#[tokio::test]
async fn mid_stream_error_is_retried_only_before_text() {
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let start = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n";
    let server = serve(vec![
        event_response(error),
        event_response(&format!("{start}{error}")),
        event_response(ANSWER),
    ])
    .await;
    let model = server.model(Api::Anthropic, "claude-sonnet-4-5");
    let (response, streamed) = call_for_deltas(&*model, hello_request()).await;
    let error = response.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Overloaded);
    assert_eq!(
        error.message,
        "acme is overloaded or broken (it said: Overloaded)."
    );
    assert_eq!(streamed, [text_delta(0, "Hi")]);
    assert_eq!(
        server.bodies().len(),
        2,
        "the first was made again, the second not (R9)"
    );
}

// proves: LASH-17, LASH-19, LASH-20
#[tokio::test]
async fn stop_reasons() {
    let of = |reason: &str| {
        event_response(&format!(
            "data: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"{reason}\"}}}}\n\ndata: {{\"type\":\"message_stop\"}}\n\n"
        ))
    };
    let cases = [
        ("end_turn", ModelStop::EndTurn),
        ("stop_sequence", ModelStop::EndTurn),
        ("max_tokens", ModelStop::Length),
        ("pause_turn", ModelStop::Length),
        ("refusal", ModelStop::Refusal),
    ];
    let server = serve(
        cases
            .iter()
            .map(|(word, _)| of(word))
            .chain([of("model_context_window_exceeded")])
            .collect(),
    )
    .await;
    let model = server.model(Api::Anthropic, "claude-sonnet-4-5");
    for (word, stop) in cases {
        let response = call_for_deltas(&*model, hello_request()).await.0.unwrap();
        assert_eq!(
            (response.stop, response.raw_stop.as_deref()),
            (stop, Some(word))
        );
        assert_eq!(response.usage, None, "unknown is not zero");
    }
    let error = call_error(&*model).await;
    assert_eq!(error.kind, ModelErrorKind::ContextOverflow);
}

/// TURN-49: results in call order; the signature goes back byte for byte.
// proves: LASH-43
#[tokio::test]
async fn history_is_sent_completely() {
    let server = serve(vec![event_response(ANSWER)]).await;
    let model = server.model(Api::Anthropic, "claude-sonnet-4-5");
    let mut second = request(vec![
        Message::User {
            content: vec![picture(), Content::text("hello"), Content::text(" ")],
        },
        assistant(answer().content),
        tool_result("toolu_1", vec![Content::text("gone"), picture()], true),
        Message::System {
            text: "Two turns left.".to_owned(),
        },
    ]);
    second.thinking = Thinking::High;
    call_for_deltas(&*model, second).await.0.unwrap();
    let cached = json!({"type": "ephemeral"});
    assert_eq!(
        server.bodies()[0],
        json!({
            "model": "claude-sonnet-4-5",
            "max_tokens": 64000,
            "stream": true,
            "thinking": {"type": "enabled", "budget_tokens": 24576},
            "system": [{"type": "text", "text": "Be brief.", "cache_control": cached}],
            "tools": [{"name": "read", "description": "Reads a file.", "input_schema": {"type": "object"}}],
            "messages": [
                {"role": "user", "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
                    {"type": "text", "text": "hello", "cache_control": cached},
                ]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "Hm", "signature": "EqQB+/=="},
                    {"type": "redacted_thinking", "data": "x9"},
                    {"type": "text", "text": "Let me \"see\" €"},
                    {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": [
                        {"type": "text", "text": "gone"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
                    ]},
                    {"type": "text", "text": "<system-notice>\nTwo turns left.\n</system-notice>", "cache_control": cached},
                ]},
            ],
        })
    );
    let requests = server.requests.lock().unwrap();
    assert!(requests[0].0.starts_with("POST /v1/messages HTTP/1.1"));
    assert!(requests[0].0.contains("x-api-key: sk-test"));
    assert!(requests[0].0.contains("anthropic-version: 2023-06-01"));
}

// proves: LOOP-43, TURN-53
#[tokio::test]
async fn temperature_is_sent_only_without_thinking() {
    for (thinking, sent) in [
        (Thinking::Default, json!(0.25)),
        (Thinking::High, json!(null)),
    ] {
        let server = serve(vec![event_response(ANSWER)]).await;
        let model = server.model(Api::Anthropic, "claude-sonnet-4-5");
        let mut request = hello_request();
        request.thinking = thinking;
        request.temperature = Some(0.25);
        call_for_deltas(&*model, request).await.0.unwrap();
        assert_eq!(server.bodies()[0]["temperature"], sent, "{thinking:?}");
        let asks_for_thinking = !server.bodies()[0]["thinking"].is_null();
        assert_eq!(asks_for_thinking, matches!(thinking, Thinking::High));
    }
}

// A cache entry is keyed by the start of a request: settings, and all earlier messages.
#[tokio::test]
async fn turn_extends_the_previous_request() {
    let read = |id| tool_call(id, "read", json!({}));
    let result = |id| tool_result(id, vec![Content::text("x")], false);
    let history = [
        user("hello"),
        // No thinking before this call: the model decides by itself.
        assistant(vec![read("a"), read("b")]),
        result("b"),
        result("a"),
        assistant(vec![read("c")]),
        result("c"),
        // Truncated before any content.
        assistant(Vec::new()),
        user("go on"),
    ];
    let server = serve(vec![event_response(ANSWER); 4]).await;
    let model = server.model(Api::Anthropic, "claude-opus-5");
    for upto in [1, 4, 6, 8] {
        let mut turn = request(history[..upto].to_vec());
        turn.thinking = Thinking::Low;
        call_for_deltas(&*model, turn).await.0.unwrap();
    }
    let bodies = server.bodies();
    assert_eq!(bodies[3]["messages"].as_array().unwrap().len(), 5);
    let ids = |at: usize| bodies[1]["messages"][2]["content"][at]["tool_use_id"].clone();
    assert_eq!((ids(0), ids(1)), (json!("a"), json!("b")));
    for pair in bodies.windows(2) {
        let [before, after] = pair else {
            unreachable!()
        };
        for part in [
            "model",
            "max_tokens",
            "thinking",
            "output_config",
            "system",
            "tools",
        ] {
            assert_eq!(before[part], after[part], "{part}");
        }
        assert_eq!(before["thinking"]["type"], "adaptive");
        let blocks = |body: &serde_json::Value| -> Vec<serde_json::Value> {
            let messages = body["messages"].as_array().unwrap().iter();
            let all = messages.flat_map(|message| message["content"].as_array().unwrap().clone());
            all.map(|mut block| {
                block.as_object_mut().unwrap().remove("cache_control");
                block
            })
            .collect()
        };
        assert!(blocks(after).starts_with(&blocks(before)));
    }
}
