//! Laws: whatever JSON comes, there is a response or an error, and text is one thing.

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value};
use turnery_engine::{Response, ResponseOverrides, extract_from_content, extract_text};

/// Words that answers are made of, so that the parsers are really entered.
const WORDS: &[&str] = &[
    "choices",
    "message",
    "content",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "id",
    "type",
    "text",
    "output",
    "candidates",
    "parts",
    "functionCall",
    "thought",
    "usage",
    "prompt_tokens",
    "stop",
    "tool_use",
    "final_answer",
    "thinking",
    "tool_results",
    "raw_result",
    "reasoning",
    "summary",
    "refusal",
    "error",
    "promptFeedback",
    "status",
    "finish_reason",
    "x",
];

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        select(WORDS).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((select(WORDS), inner), 0..5).prop_map(|pairs| {
                let pairs = pairs
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value));
                Value::Object(pairs.collect::<Map<_, _>>())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    // proves: JIDO-48
    #[test]
    fn any_json_gives_response_or_error(map in json()) {
        let text = extract_text(&map);
        let _ = extract_from_content(&map);
        let _ = Response::from_result_map(&map, ResponseOverrides::default());
        if let Ok(response) = Response::from_response(map.clone(), ResponseOverrides::default()) {
            prop_assert_eq!(response.text(), text);
            let mut ids: Vec<_> = response.calls().map(|call| call.call_id.clone()).collect();
            ids.sort();
            ids.dedup();
            prop_assert_eq!(ids.len(), response.calls().count());
        }
    }

    // proves: JIDO-5
    #[test]
    fn response_round_trips_as_source(map in json()) {
        if let Ok(response) = Response::from_response(map, ResponseOverrides::default()) {
            let again = Response::from_response(response.clone(), ResponseOverrides::default());
            prop_assert_eq!(again.as_ref(), Ok(&response));
            let stored = serde_json::to_value(&response).expect("JSON");
            let loaded = Response::from_result_map(&stored, ResponseOverrides::default());
            prop_assert_eq!(loaded, Ok(response));
        }
    }
}
