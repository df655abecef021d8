//! Tests Anthropic Messages over a real socket: parsed responses, errors and requests.

mod server;

use serde_json::json;
use server::{
    assert_same_when_cut_anywhere, assert_same_when_cut_randomly, assert_truncated_is_an_error,
    assistant, call_error, call_for_deltas, event_response, hello_request, picture, request, serve,
    text_delta, thinking_delta, tool_call, tool_result, user, without_fingerprint,
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
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"H"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}}

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
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Let me "}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"\"see\" €"}}

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
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":57,"output_tokens_details":{"thinking_tokens":21}}}

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
            reasoning: 21,
            cache_read: 400,
            cache_write: 30,
        }),
        model: "claude-x".to_owned(),
        provider: "acme".to_owned(),
        tool_results: Vec::new(),
        request: None,
    }
}

fn deltas() -> Vec<ModelDelta> {
    let args = |fragment: &str| ModelDelta::ToolCallArgs {
        block: 3,
        name: "read".to_owned(),
        fragment: fragment.to_owned(),
    };
    vec![
        thinking_delta(0, "H"),
        thinking_delta(0, "m"),
        text_delta(2, "Let me "),
        text_delta(2, "\"see\" €"),
        args("{\"path\":"),
        args("\"a\"}"),
    ]
}

// proves: TURN-52, TURN-53, TURN-54, TURN-55, LASH-107, LASH-108, LASH-109, LASH-110
// proves: ANTHROPIC-72
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

// proves: ANTHROPIC-72
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
// proves: ANTHROPIC-47
#[tokio::test]
async fn truncated_stream_is_an_error() {
    assert_truncated_is_an_error(Api::Anthropic, "claude-sonnet-4-5", ANSWER).await;
}

// proves: R9, TURN-53
// proves: ANTHROPIC-49
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
        "acme is overloaded or broken (it said: Overloaded): try again later, or choose another model."
    );
    assert_eq!(streamed, [text_delta(0, "Hi")]);
    assert_eq!(
        server.bodies().len(),
        2,
        "the first was made again, the second not (R9)"
    );
}

// proves: LASH-17, LASH-19, LASH-20
// proves: ANTHROPIC-71
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
        // Nothing to send back.
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

/// TURN-49: results in call order. The output limit is always sent, because the API requires it.
// proves: ANTHROPIC-82
// proves: LASH-43
#[tokio::test]
async fn history_is_sent_completely() {
    let server = serve(vec![event_response(ANSWER)]).await;
    let model = server.model(Api::Anthropic, "claude-sonnet-4-5");
    let mut second = request(vec![
        Message::User {
            content: vec![picture(), Content::text("hello"), Content::text(" ")],
        },
        assistant(answer().content[2..].to_vec()),
        tool_result("toolu_1", vec![Content::text("gone"), picture()], true),
        Message::System {
            text: "Two turns left.".to_owned(),
        },
    ]);
    // The round started without thinking.
    second.thinking = Thinking::High;
    call_for_deltas(&*model, second).await.0.unwrap();
    let cached = json!({"type": "ephemeral"});
    assert_eq!(
        server.bodies()[0],
        json!({
            "model": "claude-sonnet-4-5",
            "max_tokens": 64000,
            "stream": true,
            "system": [{"type": "text", "text": "Be brief.", "cache_control": cached}],
            "tools": [{"name": "read", "description": "Reads a file.", "input_schema": {"type": "object"}, "cache_control": cached}],
            "messages": [
                {"role": "user", "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
                    {"type": "text", "text": "hello", "cache_control": cached},
                ]},
                {"role": "assistant", "content": [
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
// proves: ANTHROPIC-19
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
// proves: ANTHROPIC-83
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

/// Quirk 46: a repeated start of the same message is harmless; the start of another one is an error, so that no call of
/// the mixed response runs.
// proves: ANTHROPIC-46
#[tokio::test]
async fn second_message_start_is_an_error_unless_repeated() {
    let start = ANSWER.split_inclusive("\n\n").next().unwrap();
    let twice = format!("{start}{ANSWER}");
    let stop = "event: message_delta";
    let other = start.replace("msg_1", "msg_2");
    let mixed = ANSWER.replace(stop, &format!("{other}{stop}"));
    let server = serve(vec![event_response(&twice), event_response(&mixed)]).await;
    let model = server.model_with_retries(Api::Anthropic, "claude-sonnet-4-5", 0);
    let response = call_for_deltas(&*model, hello_request()).await.0;
    assert_eq!(response.map(without_fingerprint), Ok(answer()));
    let error = call_error(&*model).await;
    assert_eq!(error.kind, ModelErrorKind::Protocol);
    assert_eq!(
        error.message,
        "The answer of acme is not complete (the message \"msg_2\" starts within the message \"msg_1\"): try again."
    );
}

/// A fragment belongs to the block that is open, whatever numbers the blocks have.
// proves: ANTHROPIC-37
#[tokio::test]
async fn fragment_of_a_block_that_is_not_open_is_an_error() {
    let sparse = ANSWER.replace("\"index\":3", "\"index\":7");
    let foreign = ANSWER.replace("\"index\":3,\"delta\"", "\"index\":2,\"delta\"");
    let server = serve(vec![event_response(&sparse), event_response(&foreign)]).await;
    let model = server.model_with_retries(Api::Anthropic, "claude-sonnet-4-5", 0);
    let response = call_for_deltas(&*model, hello_request()).await.0;
    assert_eq!(response.map(without_fingerprint), Ok(answer()));
    let error = call_error(&*model).await;
    assert_eq!(error.kind, ModelErrorKind::Protocol);
    assert!(
        error.message.contains("block 2, which is not open"),
        "{error}"
    );
}

/// One part of a response that the server pauses: reasoning, a tool of the server, and text.
fn paused_part(number: u32, stop: &str) -> String {
    let events = [
        json!({"type": "message_start", "message": {"id": format!("msg_{number}"), "model": "claude-x", "usage": {"input_tokens": 10, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "id": format!("srvtoolu_{number}"), "name": "web_search", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"query\":\"x\"}"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": format!("part {number}")}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "."}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ];
    events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect()
}

/// Quirk 50: the content goes back as it is, and the parts are one response with continued block numbers.
// proves: ANTHROPIC-50
#[tokio::test]
async fn paused_response_goes_on_within_the_call() {
    let search = |number: u32| Content::Opaque {
        provider: "acme".to_owned(),
        value: json!({"type": "server_tool_use", "id": format!("srvtoolu_{number}"), "name": "web_search", "input": {"query": "x"}}),
    };
    let server = serve(vec![
        event_response(&paused_part(1, "pause_turn")),
        event_response(&paused_part(2, "pause_turn")),
        event_response(&paused_part(3, "end_turn")),
    ])
    .await;
    let model = server.model(Api::Anthropic, "claude-opus-4-8");
    let (response, deltas) = call_for_deltas(&*model, hello_request()).await;
    let response = response.unwrap();
    let text = |number: u32| Content::text(format!("part {number}."));
    let parts: Vec<Content> = (1..=3).flat_map(|it| [search(it), text(it)]).collect();
    assert_eq!(response.content, parts);
    assert_eq!(
        (response.stop, response.raw_stop.as_deref()),
        (ModelStop::EndTurn, Some("end_turn"))
    );
    let usage = response.usage.unwrap();
    assert_eq!((usage.input, usage.output), (30, 15));
    let expected: Vec<ModelDelta> = (1..=3)
        .flat_map(|it| {
            [
                text_delta(2 * it - 1, &format!("part {it}")),
                text_delta(2 * it - 1, "."),
            ]
        })
        .collect();
    assert_eq!(deltas, expected);
    let bodies = server.bodies();
    let blocks = |numbers: std::ops::RangeInclusive<u32>| -> serde_json::Value {
        let block = |it: u32| {
            [
                json!({"type": "server_tool_use", "id": format!("srvtoolu_{it}"), "name": "web_search", "input": {"query": "x"}}),
                json!({"type": "text", "text": format!("part {it}.")}),
            ]
        };
        numbers.flat_map(block).collect()
    };
    for (body, numbers) in [(&bodies[1], 1..=1), (&bodies[2], 1..=2)] {
        let mut expected = bodies[0].clone();
        let messages = expected["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": blocks(numbers)}));
        assert_eq!(*body, expected);
    }
}

/// Quirk 50: a server that pauses for ever does not keep the call.
// proves: ANTHROPIC-50
#[tokio::test]
async fn response_that_pauses_for_ever_is_incomplete() {
    let replies = (0..20).map(|it| event_response(&paused_part(it, "pause_turn")));
    let server = serve(replies.collect()).await;
    let model = server.model(Api::Anthropic, "claude-opus-4-8");
    let response = call_for_deltas(&*model, hello_request()).await.0.unwrap();
    assert_eq!(response.stop, ModelStop::Length);
    assert_eq!(server.bodies().len(), 11);
    assert_eq!(response.content.len(), 22);
}

/// R9: a part that fails before its first delta is requested again, however much was shown of the parts before it.
#[tokio::test]
async fn continuation_is_retried_before_its_first_delta() {
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let server = serve(vec![
        event_response(&paused_part(1, "pause_turn")),
        event_response(error),
        event_response(&paused_part(2, "end_turn")),
    ])
    .await;
    let model = server.model_with_retries(Api::Anthropic, "claude-opus-4-8", 1);
    let (response, deltas) = call_for_deltas(&*model, hello_request()).await;
    assert_eq!(response.unwrap().content.len(), 4);
    assert_eq!(deltas.len(), 4, "{deltas:?}");
    let bodies = server.bodies();
    assert_eq!((bodies.len(), &bodies[1]), (3, &bodies[2]));

    let cut = paused_part(2, "end_turn").replace("data: {\"type\":\"message_stop\"}", ": end");
    assert!(!cut.contains("message_stop"), "{cut}");
    let server = serve(vec![
        event_response(&paused_part(1, "pause_turn")),
        event_response(&cut),
        event_response(ANSWER),
    ])
    .await;
    let model = server.model_with_retries(Api::Anthropic, "claude-opus-4-8", 1);
    assert_eq!(call_error(&*model).await.kind, ModelErrorKind::Unfinished);
    assert_eq!(server.bodies().len(), 2);
}

/// Quirks 43, 47 and 48: responses that ended in a failure, too early, or with nothing at all.
// proves: ANTHROPIC-43, ANTHROPIC-47, ANTHROPIC-48
#[tokio::test]
async fn responses_without_a_proper_end_are_errors() {
    let stopped = |reason: &str| {
        ANSWER.replace(
            "\"tool_use\",\"stop_sequence\"",
            &format!("\"{reason}\",\"stop_sequence\""),
        )
    };
    let without_stop = ANSWER.replace("data: {\"type\":\"message_stop\"}", ": end");
    let cases = [
        (stopped("network_error"), ModelErrorKind::Overloaded),
        (without_stop, ModelErrorKind::Unfinished),
        (String::new(), ModelErrorKind::Unfinished),
        (
            "data: {\"type\":\"message_stop\"}\n\n".to_owned(),
            ModelErrorKind::Protocol,
        ),
    ];
    let replies = cases.iter().map(|(stream, _)| event_response(stream));
    let server = serve(replies.collect()).await;
    let model = server.model_with_retries(Api::Anthropic, "claude-sonnet-4-5", 0);
    for (stream, kind) in &cases {
        assert_eq!(call_error(&*model).await.kind, *kind, "{stream}");
    }
}
