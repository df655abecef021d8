//! One answer of each vendor, as its documentation shows them.

use super::{build, call, thinking};
use serde_json::{Value, json};
use turnery_engine::{Content, ModelStop, Response, ResponseOverrides, Usage};

// proves: JIDO-3, JIDO-4
#[test]
fn anthropic_messages() {
    let redacted = json!({"type": "redacted_thinking", "data": "x9"});
    let response = build(json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
        "content": [
            {"type": "thinking", "thinking": "Hm", "signature": "EqQB"},
            redacted,
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}}
        ],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": {
            "input_tokens": 12, "output_tokens": 57,
            "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20
        }
    }));
    let expected = Response {
        content: vec![
            Content::Thinking {
                text: "Hm".to_owned(),
                signature: Some("EqQB".to_owned()),
            },
            Content::Opaque {
                provider: "unknown".to_owned(),
                value: redacted,
            },
            Content::text("Let me see."),
            call("toolu_1", "read", json!({"path": "a"})),
        ],
        stop: ModelStop::ToolUse,
        raw_stop: Some("tool_use".to_owned()),
        usage: Some(Usage {
            input: 12,
            output: 57,
            reasoning: 0,
            cache_read: 100,
            cache_write: 20,
        }),
        model: "claude-x".to_owned(),
        provider: "unknown".to_owned(),
        tool_results: Vec::new(),
        request: None,
    };
    assert_eq!(response, expected);
}

// proves: JIDO-4
#[test]
fn openai_chat_completions() {
    let response = build(json!({
        "id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-x",
        "choices": [{
            "index": 0,
            "message": {
                "role": "assistant", "content": null, "refusal": null,
                "tool_calls": [{
                    "id": "call_a", "type": "function",
                    "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}
                }]
            },
            "finish_reason": "tool_calls"
        }],
        "usage": {
            "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 8}
        }
    }));
    assert_eq!(
        response.content,
        [call("call_a", "read", json!({"path": "a"}))]
    );
    assert_eq!(response.stop, ModelStop::ToolUse);
    assert_eq!(
        response.usage,
        Some(Usage {
            input: 36,
            output: 20,
            reasoning: 8,
            cache_read: 64,
            cache_write: 0,
        })
    );
    assert_eq!(response.model, "gpt-x");
}

// proves: JIDO-4
#[test]
fn openai_responses() {
    let hidden =
        json!({"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "q"});
    let response = build(json!({
        "id": "resp_1", "object": "response", "status": "completed", "model": "gpt-x", "error": null,
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}]},
            hidden,
            {"type": "message", "role": "assistant", "content": [
                {"type": "output_text", "text": "Let me see.", "annotations": []},
                {"type": "output_text", "text": "Now.", "annotations": []}
            ]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "read",
             "arguments": "{\"path\":\"a\"}"}
        ],
        "usage": {
            "input_tokens": 100, "output_tokens": 20,
            "input_tokens_details": {"cached_tokens": 64},
            "output_tokens_details": {"reasoning_tokens": 8}
        }
    }));
    assert_eq!(
        response.content,
        [
            thinking("Hm"),
            Content::Opaque {
                provider: "unknown".to_owned(),
                value: hidden,
            },
            Content::text("Let me see."),
            Content::text("Now."),
            call("call_a", "read", json!({"path": "a"})),
        ]
    );
    assert_eq!(response.stop, ModelStop::ToolUse);
    let usage = response.usage.expect("usage");
    assert_eq!(
        (usage.input, usage.cache_read, usage.reasoning),
        (36, 64, 8)
    );
}

// proves: JIDO-4
#[test]
fn gemini_generate_content() {
    let map = json!({
        "candidates": [{
            "content": {"role": "model", "parts": [
                {"text": "Hm", "thought": true},
                {"text": "Let me see."},
                {"inlineData": {"mimeType": "image/png", "data": "iVBO"}},
                {"functionCall": {"name": "read", "args": {"path": "a"}}}
            ]},
            "finishReason": "STOP", "index": 0
        }],
        "usageMetadata": {
            "promptTokenCount": 100, "candidatesTokenCount": 20, "thoughtsTokenCount": 8,
            "cachedContentTokenCount": 64, "totalTokenCount": 128
        },
        "modelVersion": "gemini-x"
    });
    let named = ResponseOverrides {
        model: None,
        provider: Some("google".to_owned()),
    };
    let response = Response::from_response(map, named).expect("a response");
    assert_eq!(response.text(), "Let me see.");
    assert_eq!(response.thinking().as_deref(), Some("Hm"));
    assert_eq!(
        response.content.last(),
        Some(&call("call_1", "read", json!({"path": "a"})))
    );
    assert!(matches!(&response.content[2], Content::Image(image) if &*image.base64 == "iVBO"));
    assert_eq!(response.stop, ModelStop::ToolUse);
    assert_eq!(
        response.usage,
        Some(Usage {
            input: 36,
            output: 28,
            reasoning: 8,
            cache_read: 64,
            cache_write: 0,
        })
    );
    assert_eq!(
        (response.model.as_str(), response.provider.as_str()),
        ("gemini-x", "google")
    );
}

#[test]
fn stop_reasons_map_to_four_stops() {
    let anthropic = |word: &str| json!({"content": "x", "stop_reason": word});
    let chat =
        |word: &str| json!({"choices": [{"message": {"content": "x"}, "finish_reason": word}]});
    let gemini = |word: &str| json!({"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": word}]});
    let cases: [(Value, ModelStop); 12] = [
        (anthropic("end_turn"), ModelStop::EndTurn),
        (anthropic("max_tokens"), ModelStop::Length),
        (anthropic("pause_turn"), ModelStop::Length),
        (anthropic("refusal"), ModelStop::Refusal),
        (chat("stop"), ModelStop::EndTurn),
        (chat("length"), ModelStop::Length),
        (chat("content_filter"), ModelStop::Refusal),
        (gemini("STOP"), ModelStop::EndTurn),
        (gemini("MAX_TOKENS"), ModelStop::Length),
        (gemini("SAFETY"), ModelStop::Refusal),
        (
            json!({"promptFeedback": {"blockReason": "OTHER"}}),
            ModelStop::Refusal,
        ),
        (
            json!({"output": [], "status": "incomplete",
                   "incomplete_details": {"reason": "max_output_tokens"}}),
            ModelStop::Length,
        ),
    ];
    for (map, stop) in cases {
        assert_eq!(build(map.clone()).stop, stop, "{map}");
    }
}

#[test]
fn refusal_text_is_text_and_refusal() {
    let chat = json!({"choices": [{"message": {"content": null, "refusal": "I cannot."},
                                   "finish_reason": "stop"}]});
    let responses = json!({"status": "completed", "output": [
        {"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]}]});
    for map in [chat, responses] {
        let response = build(map);
        assert_eq!(response.text(), "I cannot.");
        assert_eq!(response.stop, ModelStop::Refusal);
    }
}

#[test]
fn missing_usage_is_none_and_bad_usage_is_ignored() {
    assert_eq!(build(json!({"content": "x"})).usage, None);
    assert_eq!(build(json!({"content": "x", "usage": "many"})).usage, None);
    let odd = json!({"content": "x", "usage": {"prompt_tokens": 3, "completion_tokens": -1,
                     "prompt_tokens_details": {"cached_tokens": 9}}});
    assert_eq!(
        build(odd).usage,
        None,
        "a negative count is unknown, not zero"
    );
    let written = json!({"content": "x", "usage": {"prompt_tokens": 3.0, "completion_tokens": "4",
                         "prompt_tokens_details": null}});
    let usage = build(written).usage.expect("usage");
    assert_eq!((usage.input, usage.output), (3, 4));
}
