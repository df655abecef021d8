//! Tests how streams are read.

use crate::{
    format::{
        End, Format,
        Item::{Call, Text, Thinking},
    },
    read,
    server::{
        assistant, call_error, call_for_deltas, event_response, request, serve, text_delta,
        thinking_delta, tool_call, tool_result, user,
    },
};
use serde_json::json;
use turnery_engine::{Content, ModelDelta, ModelErrorKind, ModelStop, Usage};

/// Formats whose calls arrive in fragments.
const FRAGMENTED: [Format; 3] = [Format::Anthropic, Format::Chat, Format::Responses];

/// Returns the calls of a response: name and arguments.
fn calls(response: &turnery_engine::Response) -> Vec<(String, serde_json::Value)> {
    let call = |call: &turnery_engine::ToolCall| (call.name.clone(), (*call.args).clone());
    response.calls().map(call).collect()
}

// proves: ANTHROPIC-64, CHAT-64, RESPONSES-64, GEMINI-64
#[tokio::test]
async fn text_is_shown_in_pieces() {
    for format in Format::ALL {
        let body = format.stream(&[Text(&["Let me ", "\"see\"\n", "€ 😀"])], End::Stop);
        let (response, deltas) = read(format, &body).await;
        let text = Content::text("Let me \"see\"\n€ 😀");
        assert_eq!(response.content, [text], "{format:?}");
        let pieces = ["Let me ", "\"see\"\n", "€ 😀"].map(|text| text_delta(0, text));
        assert_eq!(deltas, pieces, "{format:?}");
        assert_eq!(response.stop, ModelStop::EndTurn, "{format:?}");
        assert_eq!(response.model, "served", "{format:?}");
    }
}

// proves: ANTHROPIC-65, CHAT-65, RESPONSES-65, GEMINI-65
#[tokio::test]
async fn reasoning_is_shown_apart_from_the_text() {
    for format in Format::ALL {
        let items = [Thinking(&["H", "m"]), Text(&["Yes."])];
        let (response, deltas) = read(format, &format.stream(&items, End::Stop)).await;
        let thoughts = response.content.iter().filter_map(|item| match item {
            Content::Thinking { text, .. } => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(thoughts.collect::<Vec<_>>(), ["Hm"], "{format:?}");
        assert_eq!(response.text(), "Yes.", "{format:?}");
        let thought = [thinking_delta(0, "H"), thinking_delta(0, "m")];
        assert_eq!(deltas[..2], thought, "{format:?}");
        assert_eq!(deltas.len(), 3, "{format:?}");
    }
}

// proves: ANTHROPIC-66, CHAT-66, RESPONSES-66, GEMINI-66
// proves: ANTHROPIC-67, CHAT-67, RESPONSES-67, GEMINI-67
// proves: ANTHROPIC-68, CHAT-68, RESPONSES-68
#[tokio::test]
async fn calls_are_read_with_their_arguments() {
    let items = [
        Text(&["Reading."]),
        Call("call_a", "read", &["{\"path\":", "\"a b\"}"]),
        Call("call_b", "list", &["{\"deep\":[1,{\"x\":null}]}"]),
    ];
    for format in Format::ALL {
        let (response, deltas) = read(format, &format.stream(&items, End::Stop)).await;
        let expected = [
            Content::text("Reading."),
            tool_call("call_a", "read", json!({"path": "a b"})),
            tool_call("call_b", "list", json!({"deep": [1, {"x": null}]})),
        ];
        assert_eq!(response.content, expected, "{format:?}");
        assert_eq!(response.stop, ModelStop::ToolUse, "{format:?}");
        let shown = |number: u32| -> Vec<&str> {
            let of_call = deltas.iter().filter_map(|delta| match delta {
                ModelDelta::ToolCallArgs {
                    block, fragment, ..
                } if *block == number => Some(fragment.as_str()),
                _ => None,
            });
            of_call.collect()
        };
        let (first, second) = (shown(1), shown(2));
        assert_eq!(first.concat().replace(' ', ""), "{\"path\":\"ab\"}");
        assert_eq!(second.concat(), "{\"deep\":[1,{\"x\":null}]}");
        if FRAGMENTED.contains(&format) {
            assert_eq!(first.len(), 2, "{format:?}");
        }
    }
}

// proves: ANTHROPIC-4, CHAT-4, RESPONSES-4, GEMINI-4
// proves: ANTHROPIC-5, CHAT-5, RESPONSES-5, GEMINI-5
#[tokio::test]
async fn empty_and_repeated_ids_are_replaced() {
    let items = [
        Call("", "read", &["{}"]),
        Call("x", "read", &["{}"]),
        Call("x", "read", &["{}"]),
    ];
    for format in Format::ALL {
        let body = event_response(&format.stream(&items, End::Stop));
        let server = serve(vec![body.clone(), body]).await;
        let model = server.model_with_retries(format.api(), format.model(), 0);
        let mut used: Vec<String> = Vec::new();
        let mut history = vec![user("hello")];
        for round in 0..2 {
            let request = request(history.clone());
            let response = call_for_deltas(&*model, request).await.0.unwrap();
            let ids = response.calls().map(|call| call.call_id.to_string());
            used.extend(ids);
            assert_eq!(used.len(), 3 * (round + 1), "{format:?}");
            history.push(assistant(response.content.clone()));
            let results = response.calls().map(|call| {
                tool_result(call.call_id.as_str(), vec![Content::text("found")], false)
            });
            history.extend(results);
        }
        assert_eq!(used[1], "x", "{format:?}: the server's id is kept");
        assert!(used.iter().all(|id| !id.is_empty()), "{format:?}: {used:?}");
        used.sort();
        used.dedup();
        assert_eq!(used.len(), 6, "{format:?}: {used:?}");
    }
}

// proves: ANTHROPIC-41, CHAT-41, RESPONSES-41, GEMINI-41
#[tokio::test]
async fn call_without_arguments_has_an_empty_object() {
    for format in Format::ALL {
        let body = format.stream(&[Call("a", "read", &[])], End::Stop);
        let (response, _) = read(format, &body).await;
        assert_eq!(
            calls(&response),
            [("read".to_owned(), json!({}))],
            "{format:?}"
        );
    }
}

/// The call runs with the whole text, which is no JSON.
// proves: ANTHROPIC-40, CHAT-40, RESPONSES-40
#[tokio::test]
async fn arguments_that_parse_do_not_finish_a_call() {
    for format in FRAGMENTED {
        let args = ["{\"path\":\"a\"}", " ", "oops"];
        let body = format.stream(&[Call("a", "read", &args)], End::Stop);
        let (response, _) = read(format, &body).await;
        let expected = ("read".to_owned(), json!("{\"path\":\"a\"} oops"));
        assert_eq!(calls(&response), [expected], "{format:?}");
    }
}

/// A character outside the Basic Multilingual Plane, cut in two, in every kind of text; and one half alone.
// proves: ANTHROPIC-51, CHAT-51, RESPONSES-51, GEMINI-51
#[tokio::test]
async fn split_surrogates_are_joined() {
    let items = [
        Thinking(&["a<HIGH>", "<LOW>"]),
        Text(&["<HIGH>", "<LOW>b<LOW>"]),
    ];
    let call = [Call("c", "read", &["{\"a\":\"<HIGH>", "<LOW>\"}"])];
    let halves = |body: String| {
        body.replace("<HIGH>", "\\ud83d")
            .replace("<LOW>", "\\ude00")
    };
    for format in Format::ALL {
        // The complete item repeats the text whole.
        let whole = |body: String| body.replace("<HIGH><LOW>", "😀");
        let body = halves(whole(format.stream(&items, End::Stop)));
        let (response, _) = read(format, &body).await;
        let thought = response.content.iter().find_map(|item| match item {
            Content::Thinking { text, .. } => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(thought, Some("a😀"), "{format:?}");
        assert_eq!(response.text(), "😀b\u{fffd}", "{format:?}");
        if FRAGMENTED.contains(&format) {
            let body = halves(whole(format.stream(&call, End::Stop)));
            let (response, _) = read(format, &body).await;
            let expected = ("read".to_owned(), json!({"a": "😀"}));
            assert_eq!(calls(&response), [expected], "{format:?}");
        }
    }
}

// proves: ANTHROPIC-42, CHAT-42, RESPONSES-42, GEMINI-42
// proves: ANTHROPIC-73, CHAT-73, RESPONSES-73, GEMINI-73
#[tokio::test]
async fn events_that_say_nothing_are_skipped() {
    for format in Format::ALL {
        let mut body = String::new();
        for event in format.text("Hi").split_inclusive("\n\n") {
            for noise in format.noise() {
                body += &format!("data: {noise}\n\n: comment\n\n");
            }
            body += event;
        }
        let (response, deltas) = read(format, &body).await;
        assert_eq!(response.content, [Content::text("Hi")], "{format:?}");
        assert_eq!(deltas, [text_delta(0, "Hi")], "{format:?}");
    }
}

// proves: ANTHROPIC-74, CHAT-74, RESPONSES-74, GEMINI-74
#[tokio::test]
async fn malformed_event_is_an_error() {
    for format in Format::ALL {
        for event in ["{", "7", format.malformed()] {
            let body = format!("data: {event}\n\n{}", format.text("Hi"));
            let server = serve(vec![event_response(&body)]).await;
            let model = server.model_with_retries(format.api(), format.model(), 0);
            let error = call_error(&*model).await;
            assert_eq!(error.kind, ModelErrorKind::Protocol, "{format:?} {event}");
        }
    }
}

/// Counts in the cache are no other input; reasoning is output.
// proves: ANTHROPIC-69, CHAT-69, RESPONSES-69, GEMINI-69
// proves: ANTHROPIC-45, CHAT-45, RESPONSES-45, GEMINI-45
// proves: ANTHROPIC-52, CHAT-52, RESPONSES-52, GEMINI-52
#[tokio::test]
async fn usage_is_read_in_odd_forms_too() {
    let usage = Usage {
        input: 36,
        output: 20,
        reasoning: 8,
        cache_read: 64,
        cache_write: 0,
    };
    for format in Format::ALL {
        let body = format.text("Hi");
        for (count, expected) in [
            ("64", Some(usage)),
            ("64.0", Some(usage)),
            ("\"64\"", Some(usage)),
            ("-64", None),
            ("64.5", None),
            ("\"many\"", None),
            ("{}", None),
        ] {
            let body = body.replace(":64", &format!(":{count}"));
            let (response, _) = read(format, &body).await;
            assert_eq!(response.usage, expected, "{format:?} {count}");
            assert_eq!(response.text(), "Hi", "{format:?} {count}");
        }
    }
}

// proves: ANTHROPIC-70, CHAT-70, RESPONSES-70, GEMINI-70
// proves: ANTHROPIC-71, CHAT-71, RESPONSES-71, GEMINI-71
#[tokio::test]
async fn limits_and_filters_are_no_normal_end() {
    let items = [Text(&["Hi"]), Call("a", "read", &["{}"])];
    for format in Format::ALL {
        for (end, stop) in [
            (End::Stop, ModelStop::ToolUse),
            (End::Length, ModelStop::Length),
            (End::Filter, ModelStop::Refusal),
        ] {
            let (response, _) = read(format, &format.stream(&items, end)).await;
            assert_eq!(response.stop, stop, "{format:?} {end:?}");
            assert_eq!(response.text(), "Hi", "{format:?} {end:?}");
            // A call that may be truncated does not run.
            let runs = stop == ModelStop::ToolUse;
            let settled = response.settled();
            assert_eq!(settled.calls().count() == 1, runs, "{format:?} {end:?}");
        }
    }
}

/// Calls of the tool for parallel calls that models of OpenAI make up are the calls inside, which alone are shown.
// proves: ANTHROPIC-59, CHAT-59, RESPONSES-59
#[tokio::test]
async fn made_up_names_become_calls_of_tools() {
    let inner = "{\"tool_uses\":[{\"recipient_name\":\"functions.read\",\"parameters\":{\"p\":1}},";
    let items = [
        Call("a", "functions.stat<|channel|>commentary", &["{}"]),
        Call(
            "b",
            "multi_tool_use.parallel",
            &[inner, "{\"recipient_name\":\"list\",\"parameters\":{}}]}"],
        ),
    ];
    let unknown = [Call("a", "multi_tool_use.parallel", &["{\"uses\":[]}"])];
    for format in FRAGMENTED {
        let (response, deltas) = read(format, &format.stream(&items, End::Stop)).await;
        let expected = [
            ("stat".to_owned(), json!({})),
            ("read".to_owned(), json!({"p": 1})),
            ("list".to_owned(), json!({})),
        ];
        assert_eq!(calls(&response), expected, "{format:?}");
        let ids: Vec<_> = response.calls().map(|call| &call.call_id).collect();
        assert!(ids[1].as_str() == "b" && ids[2] != ids[1] && ids[2] != ids[0]);
        assert_eq!(deltas.len(), 1, "{format:?}: {deltas:?}");
        // What is not understood runs nothing but an unknown tool.
        let (response, _) = read(format, &format.stream(&unknown, End::Stop)).await;
        let expected = ("multi_tool_use.parallel".to_owned(), json!({"uses": []}));
        assert_eq!(calls(&response), [expected], "{format:?}");
    }
}
