//! Checks that reading any server output ends in a response or an error, without a panic.

use crate::{
    anthropic::Anthropic,
    dialect::{ApiDialect, ResponseReader, StreamStatus},
    gemini::Gemini,
    model_registry::ModelRegistry,
    openai::OpenAi,
    responses::Responses,
    sse::SseDecoder,
};
use proptest::{prelude::*, test_runner::TestCaseError};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use turnery_engine::{CallIds, Content, ModelDelta, Response, parse_call_args};

/// Words known to the APIs, and some unknown ones.
const WORDS: &[&str] = &[
    "type",
    "index",
    "delta",
    "content_block",
    "message",
    "usage",
    "text",
    "thinking",
    "signature",
    "partial_json",
    "stop_reason",
    "input",
    "id",
    "name",
    "model",
    "choices",
    "error",
    "content",
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "reasoning_details",
    "data",
    "summary",
    "refusal",
    "tool_calls",
    "function_call",
    "function",
    "arguments",
    "finish_reason",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "prompt_tokens_details",
    "cached_tokens",
    "candidates",
    "parts",
    "thought",
    "thoughtSignature",
    "functionCall",
    "args",
    "finishReason",
    "promptFeedback",
    "blockReason",
    "usageMetadata",
    "promptTokenCount",
    "cachedContentTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "toolUsePromptTokenCount",
    "modelVersion",
    "code",
    "item",
    "output_index",
    "content_index",
    "summary_index",
    "summary",
    "encrypted_content",
    "phase",
    "call_id",
    "response",
    "output",
    "status",
    "incomplete_details",
    "reason",
    "input_tokens_details",
    "output_tokens_details",
    "odd",
];

const KINDS: &[&str] = &[
    "content_block_delta",
    "content_block_start",
    "content_block_stop",
    "message_start",
    "message_delta",
    "message_stop",
    "error",
    "ping",
    "text",
    "thinking",
    "tool_use",
    "redacted_thinking",
    "tool_calls",
    "stop",
    "length",
    "message",
    "reasoning",
    "function_call",
    "web_search_call",
    "incomplete",
    "STOP",
    "MALFORMED_FUNCTION_CALL",
    "{\"a\":",
    "\u{e9}\\",
    "",
];

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop_oneof![Just(0_u64), Just(1), Just(u64::MAX)].prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        prop::sample::select(KINDS).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(WORDS), inner, 0..6).prop_map(|map| {
                Value::Object(map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    })
}

/// Types of the events of Responses.
const RESPONSES_KINDS: &[&str] = &[
    "response.created",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.refusal.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "error",
];

/// Generates output items of Responses.
fn output_item() -> impl Strategy<Value = Value> {
    let kinds = &["message", "reasoning", "function_call", "web_search_call"][..];
    let text = || prop::sample::select(&["{\"a\":1}", "{\"a\":", "", "x"][..]);
    let parts = || prop::collection::vec(text().prop_map(|text| json!({"text": text})), 0..3);
    (prop::sample::select(kinds), text(), parts(), json_value()).prop_map(
        |(kind, text, parts, odd)| {
            json!({
                "type": kind, "id": "i", "call_id": text, "name": text, "arguments": text, "phase": text,
                "content": parts, "summary": parts, "encrypted_content": text, "odd": odd,
            })
        },
    )
}

/// Generates events of Responses whose items are mostly well-formed.
fn responses_event() -> impl Strategy<Value = String> {
    let item = prop_oneof![4 => output_item(), 1 => json_value()];
    let shaped = (
        prop::sample::select(RESPONSES_KINDS),
        0_u32..3,
        prop::sample::select(KINDS),
        item,
        json_value(),
    )
        .prop_map(|(kind, index, text, item, odd)| {
            json!({
                "type": kind, "output_index": index, "content_index": index % 2, "delta": text, "arguments": text,
                "item": item, "response": {"usage": odd, "output": [item]},
            })
            .to_string()
        });
    prop_oneof![4 => shaped, 1 => event()]
}

/// Generates events of a content block of Anthropic that may be a list, which is read as a struct by position.
fn block_event() -> impl Strategy<Value = String> {
    let kinds = &[
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
    ][..];
    let list = prop::sample::select(KINDS)
        .prop_map(|kind| json!([kind, null, null, null, null, null, null]));
    let input = prop::sample::select(&["1", "{}", "{", ""][..]);
    (prop::sample::select(kinds), list, input).prop_map(|(kind, block, input)| {
        json!({"type": kind, "index": 0, "content_block": block, "delta": {"partial_json": input}})
            .to_string()
    })
}

/// Generates events close enough to real ones to pass initial parsing.
fn event() -> impl Strategy<Value = String> {
    let shaped = (
        prop::sample::select(KINDS),
        0_u32..3,
        json_value(),
        json_value(),
    )
        .prop_map(|(kind, index, one, other)| {
            json!({
                "type": kind, "index": index, "delta": one, "content_block": other,
                "choices": [{"delta": one, "finish_reason": kind}], "usage": other,
                "candidates": [{"content": {"parts": [one, other]}, "finishReason": kind}],
                "usageMetadata": other,
            })
        });
    prop_oneof![
        4 => shaped.prop_map(|value| value.to_string()),
        4 => block_event(),
        2 => json_value().prop_map(|value| value.to_string()),
        1 => any::<String>(),
        1 => Just("[DONE]".to_owned()),
        1 => Just(r#"{"type":"message_stop"}"#.to_owned()),
    ]
}

/// Content that the deltas of a response show, by block.
type ShownBlocks = BTreeMap<u32, String>;

/// Reads events, and returns the response with what its deltas showed.
fn read_events(dialect: &impl ApiDialect, events: &[String]) -> Option<(Response, ShownBlocks)> {
    let name = "openai/gpt-5".parse().expect("a name");
    let providers = crate::ProviderConfig::standard_from_env(&|_| None);
    let model = ModelRegistry::new(providers).model(&name).expect("a model");
    let mut reader = dialect.reader(model.info(), CallIds::default());
    let mut deltas = Vec::new();
    for event in events {
        match reader.on(event, &mut deltas) {
            Ok(StreamStatus::More) => {}
            Ok(StreamStatus::Done) | Err(_) => break,
        }
    }
    let response = reader.end().ok()?;
    // The sum must not overflow.
    let _ = response.usage.map(|usage| usage.context_tokens());
    let mut shown = ShownBlocks::new();
    for delta in deltas {
        let (block, fragment) = match delta {
            ModelDelta::Text { block, text } | ModelDelta::Thinking { block, text } => {
                (block, text)
            }
            ModelDelta::ToolCallArgs {
                block, fragment, ..
            } => (block, fragment),
        };
        shown.entry(block).or_default().push_str(&fragment);
    }
    Some((response, shown))
}

/// Checks that the deltas showed exactly what the response holds.
fn check_shown(response: &Response, shown: &ShownBlocks) -> Result<(), TestCaseError> {
    for (block, item) in (0..).zip(&response.content) {
        let shown = shown.get(&block).cloned();
        match item {
            Content::Text { text } | Content::Thinking { text, .. } => {
                prop_assert_eq!(shown.as_ref(), Some(text));
            }
            Content::ToolCall(call) => {
                let args = parse_call_args(&shown.unwrap_or_default());
                prop_assert_eq!(&*call.args, &args);
            }
            Content::Opaque { .. }
            | Content::Image(_)
            | Content::Audio(_)
            | Content::Document(_) => {
                prop_assert_eq!(shown, None);
            }
        }
    }
    Ok(())
}

fn decode_pieces(pieces: &[&[u8]]) -> Vec<Result<String, String>> {
    let mut decoder = SseDecoder::default();
    let mut found = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        decoder.push(piece);
        let ended = at + 1 == pieces.len();
        while let Some(event) = decoder.next_event(ended) {
            let data = event
                .map(|event| format!("{:?} {}", event.kind, event.data))
                .map_err(|why| why.to_string());
            let is_over = data.is_err();
            found.push(data);
            if is_over {
                return found;
            }
        }
    }
    found
}

proptest! {
    #[test]
    fn arbitrary_events_do_not_panic(events in prop::collection::vec(event(), 0..12)) {
        read_events(&Anthropic::default(), &events);
        read_events(&OpenAi::new("http://127.0.0.1/v1", "m", false), &events);
        read_events(&Responses::new("http://127.0.0.1/v1", false), &events);
        read_events(&Gemini::default(), &events);
    }

    #[test]
    fn responses_hold_exactly_what_was_shown(
        mut events in prop::collection::vec(responses_event(), 0..12),
    ) {
        events.push(r#"{"type":"response.completed"}"#.to_owned());
        if let Some((response, shown)) =
            read_events(&Responses::new("http://127.0.0.1/v1", false), &events)
        {
            check_shown(&response, &shown)?;
        }
    }

    #[test]
    fn decoded_events_do_not_depend_on_chunking(
        bytes in prop::collection::vec(
            prop_oneof![
                any::<u8>(), Just(b'\n'), Just(b'\r'), Just(b':'), Just(b' '),
                prop::sample::select(&b"data"[..]),
            ],
            0..80,
        ),
        cuts in prop::collection::vec(0_usize..80, 0..6),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts {
            pieces.push(&bytes[from..cut]);
            from = cut;
        }
        pieces.push(&bytes[from..]);
        prop_assert_eq!(decode_pieces(&pieces), decode_pieces(&[&bytes]));
    }
}
