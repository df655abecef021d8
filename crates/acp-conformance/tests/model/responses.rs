//! Tests of OpenAI Responses, against the events in its documentation.

use crate::wire::{post, start_model};
use acp_conformance::model::{Api, ConversationMessage, MessageRole};
use serde_json::{Value, json};

const PATH: &str = "/v1/responses";

fn request(stream: bool) -> Value {
    json!({
        "model": "m", "stream": stream, "instructions": "Be terse.",
        "tools": [
            {"type": "web_search"},
            {"type": "function", "name": "shell", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}},
            {"type": "custom", "name": "patch"},
            {"type": "namespace", "name": "mcp__kit", "tools": [{"type": "function", "name": "echo", "parameters": {"type": "object"}}]},
        ],
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
            {"role": "user", "content": "Go"},
            {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "done"},
        ],
    })
}

/// Checks and removes the sequence number of each event.
fn without_sequence_numbers(events: Vec<Value>) -> Vec<Value> {
    let numbered = events.into_iter().enumerate();
    numbered
        .map(|(index, mut event)| {
            let fields = event.as_object_mut().expect("an object");
            assert_eq!(fields.remove("sequence_number"), Some(json!(index)));
            event
        })
        .collect()
}

#[tokio::test]
async fn reasoning_and_text_are_items_with_parts() {
    let model =
        start_model("think \"a\"\nthink \"b\"\ntext \"one \"\ntext \"two\"\nusage 11 7").await;
    let events = without_sequence_numbers(post(&model, PATH, &request(true)).await.named_events());
    assert_eq!(events[0]["type"], "response.created");
    assert_eq!(events[0]["response"]["id"], "resp_0");
    assert_eq!(events[0]["response"]["status"], "in_progress");
    assert_eq!(events[1]["type"], "response.in_progress");
    let reasoning = json!({"id": "rs_0_0", "type": "reasoning", "summary": [{"type": "summary_text", "text": "ab"}]});
    let text = json!({"type": "output_text", "text": "one two", "annotations": []});
    let message = json!({"id": "msg_0_1", "type": "message", "role": "assistant", "status": "completed", "content": [text]});
    assert_eq!(
        events[2..events.len() - 1],
        [
            json!({"type": "response.output_item.added", "output_index": 0, "item": {"id": "rs_0_0", "type": "reasoning", "summary": []}}),
            json!({"type": "response.reasoning_summary_part.added", "item_id": "rs_0_0", "output_index": 0, "summary_index": 0, "part": {"type": "summary_text", "text": ""}}),
            json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs_0_0", "output_index": 0, "summary_index": 0, "delta": "a"}),
            json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs_0_0", "output_index": 0, "summary_index": 0, "delta": "b"}),
            json!({"type": "response.reasoning_summary_text.done", "item_id": "rs_0_0", "output_index": 0, "summary_index": 0, "text": "ab"}),
            json!({"type": "response.reasoning_summary_part.done", "item_id": "rs_0_0", "output_index": 0, "summary_index": 0, "part": {"type": "summary_text", "text": "ab"}}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": reasoning}),
            json!({"type": "response.output_item.added", "output_index": 1, "item": {"id": "msg_0_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}}),
            json!({"type": "response.content_part.added", "item_id": "msg_0_1", "output_index": 1, "content_index": 0, "part": {"type": "output_text", "text": "", "annotations": []}}),
            json!({"type": "response.output_text.delta", "item_id": "msg_0_1", "output_index": 1, "content_index": 0, "delta": "one "}),
            json!({"type": "response.output_text.delta", "item_id": "msg_0_1", "output_index": 1, "content_index": 0, "delta": "two"}),
            json!({"type": "response.output_text.done", "item_id": "msg_0_1", "output_index": 1, "content_index": 0, "text": "one two"}),
            json!({"type": "response.content_part.done", "item_id": "msg_0_1", "output_index": 1, "content_index": 0, "part": text}),
            json!({"type": "response.output_item.done", "output_index": 1, "item": message}),
        ]
    );
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    assert_eq!(last["response"]["status"], "completed");
    assert_eq!(last["response"]["output"], json!([reasoning, message]));
    assert_eq!(
        last["response"]["usage"],
        json!({
            "input_tokens": 11, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 18,
        })
    );
}

#[tokio::test]
async fn calls_of_each_kind_are_items() {
    let model = start_model(
        "call shell {\"command\": \"ls\"}\ncall patch {\"input\": \"*** P\"}\ncall mcp:echo {}",
    )
    .await;
    let events = without_sequence_numbers(post(&model, PATH, &request(true)).await.named_events());
    let shell = |arguments, status| json!({"id": "fc_0_0", "type": "function_call", "call_id": "call_0_0", "name": "shell", "arguments": arguments, "status": status});
    let patch = |input, status| json!({"id": "ctc_0_1", "type": "custom_tool_call", "call_id": "call_0_1", "name": "patch", "input": input, "status": status});
    let arguments = "{\"command\":\"ls\"}";
    assert_eq!(
        events[2..10],
        [
            json!({"type": "response.output_item.added", "output_index": 0, "item": shell("", "in_progress")}),
            json!({"type": "response.function_call_arguments.delta", "item_id": "fc_0_0", "output_index": 0, "delta": arguments}),
            json!({"type": "response.function_call_arguments.done", "item_id": "fc_0_0", "output_index": 0, "arguments": arguments}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": shell(arguments, "completed")}),
            json!({"type": "response.output_item.added", "output_index": 1, "item": patch("", "in_progress")}),
            json!({"type": "response.custom_tool_call_input.delta", "item_id": "ctc_0_1", "output_index": 1, "delta": "*** P"}),
            json!({"type": "response.custom_tool_call_input.done", "item_id": "ctc_0_1", "output_index": 1, "input": "*** P"}),
            json!({"type": "response.output_item.done", "output_index": 1, "item": patch("*** P", "completed")}),
        ]
    );
    let echo = &events[13]["item"];
    assert_eq!(
        (&echo["name"], &echo["namespace"]),
        (&json!("echo"), &json!("mcp__kit"))
    );
    let exchange = model.conversation_exchanges().remove(0);
    assert_eq!(exchange.called_tools, ["shell", "patch", "echo"]);
}

#[tokio::test]
async fn response_can_be_cut_off_refused_or_failed() {
    let model = start_model(
        "text \"x\"\nlength\n---\nrefuse \"no\"\n---\nrefuse\n---\ntext \"x\"\nerror 500 \"broke\"",
    )
    .await;
    let last = |events: Vec<Value>| without_sequence_numbers(events).pop().expect("an event");
    let event = last(post(&model, PATH, &request(true)).await.named_events());
    assert_eq!(event["type"], "response.incomplete");
    assert_eq!(
        event["response"]["incomplete_details"],
        json!({"reason": "max_output_tokens"})
    );
    let events = without_sequence_numbers(post(&model, PATH, &request(true)).await.named_events());
    assert_eq!(
        events[4],
        json!({"type": "response.refusal.delta", "item_id": "msg_1_0", "output_index": 0, "content_index": 0, "delta": "no"})
    );
    let response = &events.last().unwrap()["response"];
    assert_eq!(response["status"], "completed");
    assert_eq!(
        response["output"][0]["content"],
        json!([{"type": "refusal", "refusal": "no"}])
    );
    let event = last(post(&model, PATH, &request(true)).await.named_events());
    assert_eq!(
        event["response"]["incomplete_details"],
        json!({"reason": "content_filter"})
    );
    let event = last(post(&model, PATH, &request(true)).await.named_events());
    assert_eq!(event["type"], "response.failed");
    assert_eq!(
        event["response"]["error"],
        json!({"code": "server_error", "message": "broke"})
    );
}

#[tokio::test]
async fn unstreamed_response_is_one_object() {
    let model = start_model("text \"one \"\ntext \"two\"\ncall shell {\"command\": \"ls\"}").await;
    let response = post(&model, PATH, &request(false)).await.json();
    assert_eq!(
        (&response["object"], &response["status"]),
        (&json!("response"), &json!("completed"))
    );
    assert_eq!(
        response["output"],
        json!([
            {"id": "msg_0_0", "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "one two", "annotations": []}]},
            {"id": "fc_0_1", "type": "function_call", "call_id": "call_0_1", "name": "shell", "arguments": "{\"command\":\"ls\"}", "status": "completed"},
        ])
    );
}

#[tokio::test]
async fn request_is_recorded() {
    let model = start_model("text \"x\"").await;
    post(&model, PATH, &request(true)).await;
    let asked = model.conversation_exchanges().remove(0).request.unwrap();
    assert_eq!(
        (asked.api, asked.system_prompt.as_str()),
        (Api::Responses, "Be terse.\nBe kind.")
    );
    let said = |by, text: &str| ConversationMessage {
        role: by,
        text: text.to_owned(),
    };
    assert_eq!(
        asked.messages,
        [
            said(MessageRole::User, "Go"),
            said(MessageRole::Model, "shell {}"),
            said(MessageRole::Tool, "done"),
        ]
    );
    // Tools that the provider runs itself are not offered.
    let names: Vec<&str> = asked.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["shell", "patch", "echo"]);
}
