//! Tests how streams are read.

use crate::{
    ANSWER, answer, args_delta, completed, delta_event, deltas, item_event, opaque,
    server::{
        assert_same_when_cut_anywhere, assert_same_when_cut_randomly, assert_truncated_is_an_error,
        call_error, call_for_deltas, chunked_response, event_response, hello_request, serve,
        text_delta, thinking_delta, tool_call,
    },
    stream, thinking,
};
use serde_json::{Value, json};
use turnery_engine::{Content, ModelDelta, ModelErrorKind, ModelStop, Response, Usage};
use turnery_models::Api;

/// Returns the response to these events, with its deltas.
async fn read(events: &[Value]) -> (Response, Vec<ModelDelta>) {
    let server = serve(vec![event_response(&stream(events))]).await;
    let model = server.model_with_retries(Api::OpenAiResponses, "m1", 0);
    let (response, deltas) = call_for_deltas(&*model, hello_request()).await;
    (response.expect("a response"), deltas)
}

/// Returns why these events are no response.
async fn read_error(events: &[Value]) -> (ModelErrorKind, String) {
    let server = serve(vec![event_response(&stream(events))]).await;
    let model = server.model_with_retries(Api::OpenAiResponses, "m1", 0);
    let error = call_error(&*model).await;
    (error.kind, error.message)
}

fn call_item(call_id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "call_id": call_id, "name": "read", "arguments": arguments})
}

/// Quirk 38: item ids differ from event to event.
// proves: TURN-52, TURN-53, TURN-54, TURN-55, LASH-107, LASH-108, LASH-109, LASH-110, LASH-111
// proves: RESPONSES-38, RESPONSES-72
#[tokio::test]
async fn response_does_not_depend_on_one_cut() {
    let api = Api::OpenAiResponses;
    assert_same_when_cut_anywhere(api, "m1", ANSWER, &answer(), &deltas()).await;
}

// proves: RESPONSES-72
#[test]
fn response_does_not_depend_on_many_cuts() {
    let api = Api::OpenAiResponses;
    assert_same_when_cut_randomly(api, "m1", ANSWER, &answer(), &deltas());
}

/// Quirk 47.
// proves: LASH-25, C-31
// proves: RESPONSES-47
#[tokio::test]
async fn truncated_stream_is_an_error() {
    assert_truncated_is_an_error(Api::OpenAiResponses, "m1", ANSWER).await;
    // A chunk that is still open is a lost connection.
    let bytes = chunked_response(ANSWER);
    let server = serve(vec![bytes[..bytes.len() / 2].to_vec()]).await;
    let model = server.model_with_retries(Api::OpenAiResponses, "m1", 0);
    assert_eq!(call_error(&*model).await.kind, ModelErrorKind::Network);
}

/// Quirk 48: a status of success proves nothing.
// proves: RESPONSES-48
#[tokio::test]
async fn response_without_output_or_end_is_an_error() {
    for events in [vec![], vec![json!({"type": "response.created"})]] {
        let (kind, _) = read_error(&events).await;
        assert_eq!(kind, ModelErrorKind::Unfinished, "{events:?}");
    }
    let server = serve(vec![event_response("data: [DONE]\n\n")]).await;
    let model = server.model_with_retries(Api::OpenAiResponses, "m1", 0);
    let error = call_error(&*model).await;
    assert_eq!(error.kind, ModelErrorKind::Unfinished, "{error}");
    assert!(error.message.contains("no response.completed"), "{error}");
}

// proves: RESPONSES-43, RESPONSES-70
#[tokio::test]
async fn incomplete_response_names_its_reason() {
    for (details, stop, word) in [
        (
            json!({"reason": "max_output_tokens"}),
            ModelStop::Length,
            "max_output_tokens",
        ),
        (
            json!({"reason": "content_filter"}),
            ModelStop::Refusal,
            "content_filter",
        ),
        (
            json!({"reason": "something_new"}),
            ModelStop::Length,
            "something_new",
        ),
        (json!(null), ModelStop::Length, "incomplete"),
    ] {
        let end = json!({"type": "response.incomplete", "response": {
            "status": "incomplete", "incomplete_details": details}});
        let (response, _) = read(&[delta_event("output_text", 0, "Hi"), end]).await;
        assert_eq!((response.stop, response.text().as_str()), (stop, "Hi"));
        assert_eq!(response.raw_stop.as_deref(), Some(word));
        assert_eq!(response.usage, None, "unknown is not zero");
    }
}

/// The last arguments of a truncated response may be missing; the engine runs none of its calls.
#[tokio::test]
async fn truncated_call_ends_with_length() {
    let (response, _) = read(&[
        item_event("added", 0, call_item("a", "")),
        delta_event("function_call_arguments", 0, "{\"p\":"),
        json!({"type": "response.incomplete", "response": {
            "incomplete_details": {"reason": "max_output_tokens"}}}),
    ])
    .await;
    assert_eq!(response.stop, ModelStop::Length);
    assert_eq!(response.settled().calls().count(), 0);
}

#[tokio::test]
async fn refusal_is_text_and_a_stop_reason() {
    let (response, deltas) = read(&[
        delta_event("refusal", 0, "I can"),
        delta_event("refusal", 0, "not."),
        completed(),
    ])
    .await;
    assert_eq!(response.stop, ModelStop::Refusal);
    assert_eq!(response.content, [Content::text("I cannot.")]);
    assert_eq!(deltas, [text_delta(0, "I can"), text_delta(0, "not.")]);
}

/// Models that show their reasoning itself send it in another event than a summary.
#[tokio::test]
async fn reasoning_text_without_encryption_is_shown_only() {
    let item = json!({"type": "reasoning", "summary": [], "encrypted_content": null,
        "content": [{"type": "reasoning_text", "text": "Hm"}]});
    let (response, deltas) = read(&[
        item_event("added", 0, json!({"type": "reasoning", "summary": []})),
        delta_event("reasoning_text", 0, "H"),
        delta_event("reasoning_text", 0, "m"),
        item_event("done", 0, item.clone()),
        // The same, only in the complete item.
        item_event("done", 1, item),
        delta_event("output_text", 2, "Hi"),
        completed(),
    ])
    .await;
    let content = [thinking("Hm"), thinking("Hm"), Content::text("Hi")];
    assert_eq!(response.content, content);
    assert_eq!(
        deltas[..2],
        [thinking_delta(0, "H"), thinking_delta(0, "m")]
    );
}

/// Quirk 32: such an item must not be sent back.
// proves: RESPONSES-32
#[tokio::test]
async fn empty_reasoning_leaves_nothing() {
    let empty = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": ""});
    let (response, _) = read(&[
        item_event("done", 0, empty),
        delta_event("output_text", 1, "Hi"),
        completed(),
    ])
    .await;
    assert_eq!(response.content, [Content::text("Hi")]);
}

/// Every text is shown even if the server skips its fragments.
#[tokio::test]
async fn complete_items_replace_missing_fragments() {
    let reasoning = json!({"type": "reasoning", "encrypted_content": "x", "summary": [
        {"type": "summary_text", "text": "A"}, {"type": "summary_text", "text": "B"}]});
    let message = json!({"type": "message", "content": [
        {"type": "output_text", "text": "Hi"}, {"type": "refusal", "refusal": "no"}]});
    let items = [reasoning.clone(), message, call_item("a", "{\"p\":1}")];
    let content = [
        thinking("A\n\nB"),
        opaque(reasoning),
        Content::text("Hi\n\nno"),
        tool_call("a", "read", json!({"p": 1})),
    ];
    let shown = [
        thinking_delta(0, "A"),
        thinking_delta(0, "\n\n"),
        thinking_delta(0, "B"),
        text_delta(2, "Hi"),
        text_delta(2, "\n\n"),
        text_delta(2, "no"),
        args_delta(3, "read", "{\"p\":1}"),
    ];
    let mut events: Vec<Value> = (0..)
        .zip(&items)
        .map(|(index, item)| item_event("done", index, item.clone()))
        .collect();
    // Each item counts once.
    events.push(item_event("done", 2, items[2].clone()));
    events.push(completed());
    let only_last = [json!({"type": "response.completed", "response": {"output": items}})];
    for events in [&events[..], &only_last] {
        let (response, deltas) = read(events).await;
        assert_eq!(response.content, content);
        assert_eq!(deltas, shown);
        assert_eq!(response.stop, ModelStop::ToolUse);
    }
}

/// The last event repeats all items, which a proxy may have numbered differently.
#[tokio::test]
async fn last_event_repeats_no_item() {
    let message = json!({"type": "message", "content": [{"type": "output_text", "text": "Hi"}]});
    let end = json!({"type": "response.completed", "response": {"output": [message]}});
    let (response, deltas) = read(&[
        delta_event("output_text", 3, "Hi"),
        item_event("done", 3, message.clone()),
        end,
    ])
    .await;
    assert_eq!(response.content, [Content::text("Hi")]);
    assert_eq!(deltas, [text_delta(0, "Hi")]);
}

/// Quirk 41, and fragments that stop before the end.
// proves: RESPONSES-39, RESPONSES-41
#[tokio::test]
async fn arguments_are_completed_at_the_end_of_a_call() {
    let done = |index: u32, arguments: Value| {
        let kind = "response.function_call_arguments.done";
        json!({"type": kind, "output_index": index, "arguments": arguments})
    };
    let (response, _) = read(&[
        item_event("added", 0, call_item("a", "")),
        delta_event("function_call_arguments", 0, "{\"p\""),
        done(0, json!("{\"p\":1}")),
        item_event("added", 1, call_item("b", "")),
        item_event("done", 1, call_item("b", "")),
        item_event("added", 2, call_item("c", "")),
        done(2, json!({"p": 2})),
        // The same arguments, spelled differently.
        item_event("added", 3, call_item("d", "")),
        delta_event("function_call_arguments", 3, "{ \"p\": 3 }"),
        item_event("done", 3, call_item("d", "{\"p\":3}")),
        // The name comes after the arguments (quirk 39).
        item_event("added", 4, json!({"type": "function_call", "call_id": "e"})),
        delta_event("function_call_arguments", 4, "{}"),
        item_event(
            "done",
            4,
            json!({"type": "function_call", "call_id": "e", "name": "functions.read",
                "arguments": "{}"}),
        ),
        completed(),
    ])
    .await;
    let call = |id, args| tool_call(id, "read", args);
    let calls = [
        call("a", json!({"p": 1})),
        call("b", json!({})),
        call("c", json!({"p": 2})),
        call("d", json!({"p": 3})),
        call("e", json!({})),
    ];
    assert_eq!(response.content, calls);
}

/// Quirk 40: the first fragments are valid arguments by themselves.
// proves: RESPONSES-40
#[tokio::test]
async fn call_without_end_is_an_error() {
    let begun = item_event("added", 0, call_item("a", ""));
    let (kind, message) = read_error(&[
        begun.clone(),
        delta_event("function_call_arguments", 0, "{}"),
        completed(),
    ])
    .await;
    assert_eq!(kind, ModelErrorKind::Protocol);
    assert!(
        message.contains("output item 0 is a call without end"),
        "{message}"
    );
    // Other arguments at the end than were shown.
    let (kind, message) = read_error(&[
        begun,
        delta_event("function_call_arguments", 0, "{}"),
        item_event("done", 0, call_item("a", "{\"all\":true}")),
        completed(),
    ])
    .await;
    assert_eq!(kind, ModelErrorKind::Protocol);
    assert!(message.contains("other arguments"), "{message}");
}

// proves: RESPONSES-46
#[tokio::test]
async fn fragments_of_other_items_are_refused() {
    let call = item_event("added", 0, call_item("a", ""));
    for wrong in [
        delta_event("output_text", 0, "Hi"),
        item_event("added", 0, call_item("b", "")),
        item_event("added", 0, json!({"type": "message"})),
    ] {
        let (kind, _) = read_error(&[call.clone(), wrong.clone(), completed()]).await;
        assert_eq!(kind, ModelErrorKind::Protocol, "{wrong}");
    }
    let complete = json!({"type": "response.function_call_arguments.done", "output_index": 0,
        "arguments": "{}"});
    let late = delta_event("function_call_arguments", 0, " ");
    let (kind, _) = read_error(&[call, complete, late, completed()]).await;
    assert_eq!(kind, ModelErrorKind::Protocol, "arguments after their end");
    let text = delta_event("output_text", 0, "Hi");
    for wrong in [
        delta_event("function_call_arguments", 0, "{}"),
        delta_event("reasoning_summary_text", 0, "Hm"),
        item_event("done", 0, call_item("a", "{}")),
    ] {
        let (kind, _) = read_error(&[text.clone(), wrong.clone(), completed()]).await;
        assert_eq!(kind, ModelErrorKind::Protocol, "{wrong}");
    }
}

/// Quirk 46: a repeated start is harmless; the start of another response is an error, so that no call of the mixed ones
/// runs.
// proves: RESPONSES-46
#[tokio::test]
async fn second_response_in_a_stream_is_an_error() {
    let created = |id: &str| json!({"type": "response.created", "response": {"id": id}});
    let events = |second: Value| {
        [
            created("resp_1"),
            item_event("done", 0, call_item("a", "{}")),
            second,
            item_event("done", 1, call_item("b", "{}")),
            completed(),
        ]
    };
    for harmless in [
        created("resp_1"),
        created(""),
        json!({"type": "response.created", "response": 7}),
        json!({"type": "response.created"}),
    ] {
        let (response, _) = read(&events(harmless)).await;
        assert_eq!(response.calls().count(), 2);
    }
    let (kind, message) = read_error(&events(created("resp_2"))).await;
    assert_eq!(kind, ModelErrorKind::Protocol);
    let why = "the response \"resp_2\" starts within the response \"resp_1\"";
    assert!(message.contains(why), "{message}");
}

/// Quirk 38: only the position tells which item a fragment belongs to.
// proves: RESPONSES-37, RESPONSES-38
#[tokio::test]
async fn interleaved_items_are_kept_apart() {
    let (response, deltas) = read(&[
        item_event("added", 1, call_item("b", "")),
        item_event("added", 0, json!({"type": "message", "id": "same"})),
        delta_event("output_text", 0, "A"),
        delta_event("function_call_arguments", 1, "{\"p\":"),
        delta_event("output_text", 0, "B"),
        delta_event("function_call_arguments", 1, "1}"),
        item_event("done", 1, call_item("b", "{\"p\":1}")),
        completed(),
    ])
    .await;
    let call = tool_call("b", "read", json!({"p": 1}));
    assert_eq!(response.content, [call, Content::text("AB")]);
    let shown = [
        text_delta(1, "A"),
        args_delta(0, "read", "{\"p\":"),
        text_delta(1, "B"),
        args_delta(0, "read", "1}"),
    ];
    assert_eq!(deltas, shown);
}

/// What the provider ran is kept to be sent back; its id refers to nothing (quirk 30).
#[tokio::test]
async fn unknown_items_are_kept_and_unknown_events_ignored() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed",
        "action": {"type": "search", "query": "q"}});
    let (response, _) = read(&[
        json!({"type": "response.queued", "delta": {"any": "type"}, "item": 7, "arguments": 1}),
        item_event("added", 0, json!({"type": "web_search_call", "id": "ws_1"})),
        json!({"type": "response.web_search_call.searching", "output_index": 0}),
        item_event("done", 0, search),
        delta_event("output_text", 1, "Hi"),
        completed(),
    ])
    .await;
    let kept = json!({"type": "web_search_call", "status": "completed",
        "action": {"type": "search", "query": "q"}});
    assert_eq!(response.content, [opaque(kept), Content::text("Hi")]);
    assert_eq!(response.stop, ModelStop::EndTurn);
}

/// Quirks 4 and 5.
#[tokio::test]
async fn repeated_and_empty_call_ids_are_replaced() {
    let (response, _) = read(&[
        item_event("done", 0, call_item("x", "{}")),
        item_event("done", 1, call_item("x", "{}")),
        item_event("done", 2, call_item("", "{}")),
        completed(),
    ])
    .await;
    let ids: Vec<&str> = response.calls().map(|call| call.call_id.as_str()).collect();
    assert_eq!(ids, ["x", "call_2", "call_3"]);
}

/// Quirks 45 and 52.
// proves: I2
#[tokio::test]
async fn invalid_usage_is_unknown_and_response_is_kept() {
    let tokens = |input, output, reasoning| {
        Some(Usage {
            input,
            output,
            reasoning,
            ..Usage::default()
        })
    };
    let reasoning = json!({"reasoning_tokens": 4});
    for (usage, expected) in [
        (
            json!({"input_tokens": 7, "output_tokens": 5}),
            tokens(7, 5, 0),
        ),
        (
            json!({"input_tokens": 7.0, "output_tokens": "5"}),
            tokens(7, 5, 0),
        ),
        (json!({"input_tokens": -7, "output_tokens": 5}), None),
        (json!({"input_tokens": 7, "output_tokens": 5.5}), None),
        (
            json!({"input_tokens": 7, "output_tokens": 5, "input_tokens_details": []}),
            None,
        ),
        (
            json!({"input_tokens": 7, "output_tokens": 5, "input_tokens_details": {"cached_tokens": -1}}),
            None,
        ),
        // More from the cache than there was.
        (
            json!({"input_tokens": 7, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 9}}),
            Some(Usage {
                output: 5,
                cache_read: 7,
                ..Usage::default()
            }),
        ),
        // Reasoning is part of the output, unless the total says otherwise.
        (
            json!({"input_tokens": 7, "output_tokens": 5, "total_tokens": 12, "output_tokens_details": reasoning}),
            tokens(7, 5, 4),
        ),
        (
            json!({"input_tokens": 7, "output_tokens": 5, "total_tokens": 16, "output_tokens_details": reasoning}),
            tokens(7, 9, 4),
        ),
        (
            json!({"input_tokens": 7, "output_tokens": 3, "output_tokens_details": reasoning}),
            tokens(7, 7, 4),
        ),
        (json!({}), None),
        (json!("none"), None),
        (json!(null), None),
    ] {
        let end = json!({"type": "response.completed", "response": {"usage": usage}});
        let (response, _) = read(&[delta_event("output_text", 0, "Hi"), end]).await;
        assert_eq!(response.text(), "Hi");
        assert_eq!(response.usage, expected, "{usage}");
    }
}
