//! Checks that reading any server output ends in a response or an error, without a panic.

use crate::{
    anthropic::Anthropic,
    dialect::{ApiDialect, ResponseReader, StreamStatus},
    model_registry::ModelRegistry,
    openai::OpenAi,
    sse::SseDecoder,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use turnery_engine::CallIds;

/// Words known to the two APIs, and some unknown ones.
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
    "code",
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
            })
        });
    prop_oneof![
        4 => shaped.prop_map(|value| value.to_string()),
        2 => json_value().prop_map(|value| value.to_string()),
        1 => any::<String>(),
        1 => Just("[DONE]".to_owned()),
        1 => Just(r#"{"type":"message_stop"}"#.to_owned()),
    ]
}

fn read_events(dialect: &impl ApiDialect, events: &[String]) {
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
    if let Ok(response) = reader.end() {
        // The sum must not overflow.
        let _ = response.usage.map(|usage| usage.context_tokens());
    }
}

fn decode_pieces(pieces: &[&[u8]]) -> Vec<Result<String, String>> {
    let mut decoder = SseDecoder::default();
    let mut found = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        decoder.push(piece);
        let ended = at + 1 == pieces.len();
        while let Some(data) = decoder.next_data(ended) {
            let data = data.map(str::to_owned).map_err(|why| why.to_string());
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
        read_events(&OpenAi::new("http://127.0.0.1/v1", false), &events);
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
