//! Tests streams in the variants of various servers.

use crate::server::{
    call_for_deltas, event_response, hello_request, serve, thinking_delta, tool_call,
};
use serde_json::{Value, json};
use turnery_engine::{Content, ModelDelta, ModelStop, Response};
use turnery_models::Api;

/// Returns the response to a stream of these events.
pub(crate) async fn read(events: &[&str]) -> Response {
    read_with_deltas(events).await.0
}

/// Returns the response to a stream of these events, and its deltas.
pub(crate) async fn read_with_deltas(events: &[&str]) -> (Response, Vec<ModelDelta>) {
    let body: String = events.iter().map(|it| format!("data: {it}\n\n")).collect();
    let server = serve(vec![event_response(&body)]).await;
    let model = server.model_with_retries(Api::OpenAi, "m1", 0);
    let (response, deltas) = call_for_deltas(&*model, hello_request()).await;
    (response.expect("a response"), deltas)
}

fn thought(text: &str) -> Content {
    Content::Thinking {
        text: text.to_owned(),
        signature: None,
    }
}

/// What the response keeps about its reasoning.
fn kept(value: Value) -> Content {
    Content::Opaque {
        provider: "acme".to_owned(),
        value,
    }
}

/// Streams of various servers, and the content that they represent.
// proves: LASH-19
#[tokio::test]
async fn server_variants_are_read() {
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
            vec![
                thought("think"),
                Content::text("say"),
                kept(json!({"reasoning_field": "reasoning"})),
            ],
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
                kept(json!({"reasoning_field": "thinking_parts"})),
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

/// Quirk 24: the same reasoning in two fields is read once, and its field is kept if it is not the usual one.
// proves: CHAT-24
#[tokio::test]
async fn reasoning_is_read_from_each_field() {
    for (delta, field) in [
        (r#"{"reasoning_content":"H"}"#, None),
        (r#"{"reasoning":"H"}"#, Some("reasoning")),
        (r#"{"reasoning_text":"H"}"#, Some("reasoning_text")),
        (r#"{"reasoning_content":"H","reasoning":"H"}"#, None),
        (
            r#"{"reasoning_content":"","reasoning":"H"}"#,
            Some("reasoning"),
        ),
        (
            r#"{"reasoning_content":null,"reasoning_text":"H","reasoning":null}"#,
            Some("reasoning_text"),
        ),
    ] {
        let chunk = format!(r#"{{"choices":[{{"delta":{delta}}}]}}"#);
        let end = r#"{"choices":[{"delta":{"content":"say"},"finish_reason":"stop"}]}"#;
        let (response, deltas) = read_with_deltas(&[&chunk, &chunk, end]).await;
        let mut content = vec![thought("HH"), Content::text("say")];
        content.extend(field.map(|field| kept(json!({"reasoning_field": field}))));
        assert_eq!(response.content, content, "{delta}");
        assert_eq!(
            deltas[..2],
            [thinking_delta(0, "H"), thinking_delta(0, "H")]
        );
    }
}

/// Quirk 25: pieces with the same type and index are put together; everything else stays as it came.
// proves: CHAT-25
#[tokio::test]
async fn reasoning_details_are_collected() {
    let events = [
        r#"{"choices":[{"delta":{"reasoning":"H","reasoning_details":[{"type":"reasoning.text","text":"H","format":"anthropic-claude-v1","index":0,"signature":null}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"m \"\ud83d\ude00\"","reasoning_details":[{"type":"reasoning.text","text":"m \"\ud83d\ude00\"","format":"anthropic-claude-v1","index":0}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","signature":"c2ln+/==","format":"anthropic-claude-v1","index":0}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"AA+/=","id":"c_a","index":0,"odd":{"b":1,"a":[2]}},{"type":"reasoning.encrypted","data":"BB","id":"c_b","index":0}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.summary","summary":"Su","index":1},{"type":"reasoning.summary","summary":"m","index":1},{"type":"reasoning.text","text":"","index":2}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text"}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"say"},"finish_reason":"stop"}]}"#,
    ];
    let (response, deltas) = read_with_deltas(&events).await;
    let details = json!([
        {"type": "reasoning.text", "text": "Hm \"😀\"", "format": "anthropic-claude-v1", "index": 0, "signature": "c2ln+/=="},
        {"type": "reasoning.encrypted", "data": "AA+/=", "id": "c_a", "index": 0, "odd": {"b": 1, "a": [2]}},
        {"type": "reasoning.encrypted", "data": "BB", "id": "c_b", "index": 0},
        {"type": "reasoning.summary", "summary": "Sum", "index": 1},
        {"type": "reasoning.text", "text": "", "index": 2},
    ]);
    assert_eq!(
        response.content,
        [
            // The summary has no other field, so it is shown.
            thought("Hm \"😀\"Sum"),
            Content::text("say"),
            kept(json!({"reasoning_field": "reasoning", "reasoning_details": details})),
        ]
    );
    assert_eq!(
        deltas[..3],
        [
            thinking_delta(0, "H"),
            thinking_delta(0, "m \"😀\""),
            thinking_delta(0, "Sum"),
        ]
    );
}

/// Quirks 42 and 52: chunks that say nothing, empty events, and keys that repeat.
// proves: CHAT-42, CHAT-52
#[tokio::test]
async fn chunks_that_say_nothing_are_skipped() {
    let response = read(&[
        "",
        r#"{"id":"x","object":"chat.completion.chunk"}"#,
        r#"{"message":"still working"}"#,
        r#"{"choices":[]}"#,
        r#"{"choices":null,"usage":null}"#,
        r#"{"choices":[{"delta":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{"role":"","content":null,"tool_calls":null}}]}"#,
        r#"{"choices":[{"delta":{"role":"assistant","content":"","tool_calls":[]}}]}"#,
        "   ",
        r#"{"choices":[{"delta":{"content":"Hi","role":"assistant","content":"Hello"}}],"model":"m2","model":"m2"}"#,
        r#"{"choices":[{"delta":{"content":"!"},"finish_reason":"stop","finish_reason":"stop"}]}"#,
        "[DONE]",
    ])
    .await;
    assert_eq!(response.content, [Content::text("Hello!")]);
    assert_eq!(
        (response.stop, response.model.as_str()),
        (ModelStop::EndTurn, "m2")
    );
}

/// Quirk 51: a character outside the Basic Multilingual Plane, cut in two.
// proves: CHAT-51
#[tokio::test]
async fn split_surrogates_are_joined_in_every_text() {
    let (response, deltas) = read_with_deltas(&[
        r#"{"choices":[{"delta":{"reasoning_content":"a\ud83d"}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_content":"\ude00"}}]}"#,
        r#"{"choices":[{"delta":{"content":"\ud83d"}}]}"#,
        r#"{"choices":[{"delta":{"content":"\ude00b\udead"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"read","arguments":"{\"a\":\"\ud83d"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\ude01\"}"}}]},"finish_reason":"tool_calls"}]}"#,
    ])
    .await;
    assert_eq!(
        response.content,
        [
            thought("a😀"),
            Content::text("😀b\u{fffd}"),
            tool_call("c", "read", json!({"a": "😁"})),
        ]
    );
    assert_eq!(
        deltas[..2],
        [thinking_delta(0, "a"), thinking_delta(0, "😀")]
    );
}

/// Quirk 43.
// proves: CHAT-43
#[tokio::test]
async fn finish_reasons_are_understood() {
    for (word, stop) in [
        ("stop", ModelStop::EndTurn),
        ("end", ModelStop::EndTurn),
        ("eos", ModelStop::EndTurn),
        ("length", ModelStop::Length),
        ("content_filter", ModelStop::Refusal),
        ("sensitive", ModelStop::Refusal),
    ] {
        let end =
            format!(r#"{{"choices":[{{"delta":{{"content":"say"}},"finish_reason":"{word}"}}]}}"#);
        let response = read(&[&end]).await;
        assert_eq!(
            (response.stop, response.raw_stop.as_deref()),
            (stop, Some(word))
        );
    }
}
