//! Tests that each rule of Responses refuses a bad request.

mod broken;

use broken::{BrokenRequest, RuleFixture, assert_complete, list, remove};
use model_api_rules::{ApiFormat, IssuedReasoning};
use serde_json::{Value, json};

fn good() -> Value {
    json!({
        "model": "gpt-5.1",
        "instructions": "Be brief.",
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "input": [
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "Look."},
                {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,QUJD"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
            ]},
            {"type": "reasoning", "summary": [], "encrypted_content": "c2ln"},
            {"type": "message", "role": "assistant", "content": "I look.", "phase": "commentary"},
            {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
            {"type": "function_call", "call_id": "call_2", "name": "look", "arguments": "{\"at\":1}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "A field."},
            {"type": "function_call_output", "call_id": "call_2", "output": [
                {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,QUJD"},
            ]},
            {"type": "web_search_call", "status": "completed"},
        ],
        "tools": [{"type": "function", "name": "look", "description": "Looks.", "strict": true, "parameters": {
            "type": "object",
            "properties": {"at": {"type": ["integer", "null"]}},
            "required": ["at"],
            "additionalProperties": false,
        }}],
        "tool_choice": "none",
        "parallel_tool_calls": true,
        "max_output_tokens": 4000,
        "reasoning": {"effort": "low", "summary": "auto"},
        "prompt_cache_key": "s1",
    })
}

fn judged(good: Value) -> RuleFixture<'static> {
    RuleFixture::new(ApiFormat::Responses, "/v1/responses", good)
}

fn input(body: &mut Value) -> &mut Vec<Value> {
    list(body, "input")
}

const BROKEN: &[BrokenRequest] = &[
    ("known fields", |it| it["messages"] = json!([])),
    ("known fields", |it| it["tools"][0]["function"] = json!({})),
    ("known fields", |it| {
        it["reasoning"]["summary"] = json!("long")
    }),
    ("known items", |it| it["input"] = json!([])),
    ("known items", |it| it["input"][2]["tool_calls"] = json!([])),
    ("known items", |it| {
        it["input"][7]["type"] = json!("redacted_thinking")
    }),
    ("known items", |it| remove(&mut it["input"][1], "summary")),
    ("content of messages", |it| {
        it["input"][0]["content"][0]["type"] = json!("text")
    }),
    ("content of messages", |it| {
        it["input"][2]["content"] = json!([{"type": "input_text", "text": "I look."}]);
    }),
    ("content of messages", |it| {
        it["input"][2]["content"] = json!("")
    }),
    ("content of messages", |it| {
        remove(&mut it["input"][5], "output")
    }),
    ("media types", |it| {
        it["input"][0]["content"][1]["image_url"] = json!("data:image/tiff;base64,QUJD")
    }),
    ("media types", |it| {
        it["input"][6]["output"][0]["image_url"] = json!("data:image/png;base64,QUJ")
    }),
    ("media types", |it| {
        it["input"][0]["content"][0]["annotations"] = json!([])
    }),
    ("outputs follow calls", |it| {
        input(it).remove(6);
    }),
    ("outputs answer calls", |it| {
        input(it)
            .push(json!({"type": "function_call_output", "call_id": "call_1", "output": "Again."}));
    }),
    ("unique call ids", |it| {
        let again = it["input"].as_array().expect("the good request has it")[3..7].to_vec();
        input(it).extend(again);
    }),
    ("form of call ids", |it| {
        let long = "x".repeat(65);
        it["input"][3]["call_id"] = json!(long);
        it["input"][5]["call_id"] = json!(long);
    }),
    ("arguments are JSON objects", |it| {
        it["input"][3]["arguments"] = json!("{oops")
    }),
    ("names of earlier calls", |it| {
        it["input"][3]["name"] = json!("functions.look")
    }),
    ("no ids without a store", |it| {
        it["input"][1]["id"] = json!("rs_1")
    }),
    ("no ids without a store", |it| {
        it["previous_response_id"] = json!("resp_1")
    }),
    ("encrypted reasoning without a store", |it| {
        it["input"][1]["encrypted_content"] = json!(null)
    }),
    ("reasoning asks to be encrypted", |it| remove(it, "include")),
    ("an item follows reasoning", |it| {
        let reasoning = it["input"][1].clone();
        input(it).push(reasoning);
    }),
    ("an item follows reasoning", |it| {
        input(it).swap(0, 1);
    }),
    ("form of tool names", |it| {
        it["tools"][0]["name"] = json!("look around")
    }),
    ("root of tool schemas", |it| {
        it["tools"][0]["parameters"]["allOf"] = json!([])
    }),
    ("root of tool schemas", |it| {
        it["tools"][0]["parameters"]["not"] = json!({})
    }),
    ("root of tool schemas", |it| {
        remove(&mut it["tools"][0]["parameters"], "properties")
    }),
    ("strict schemas", |it| {
        remove(&mut it["tools"][0]["parameters"], "required")
    }),
    ("strict schemas", |it| {
        it["tools"][0]["parameters"]["$defs"] = json!({"a": {"properties": {}}})
    }),
    ("strict schemas", |it| {
        remove(&mut it["tools"][0], "strict");
        remove(&mut it["tools"][0]["parameters"], "additionalProperties");
    }),
    ("choice needs tools", |it| remove(it, "tools")),
    ("smallest output limit", |it| {
        it["max_output_tokens"] = json!(15)
    }),
    ("length of the cache key", |it| {
        it["prompt_cache_key"] = json!("x".repeat(65))
    }),
    ("no temperature for reasoning models", |it| {
        it["temperature"] = json!(0.5)
    }),
    ("reasoning effort of the model", |it| {
        it["reasoning"]["effort"] = json!("minimal")
    }),
    ("reasoning effort of the model", |it| {
        it["model"] = json!("gpt-4.1")
    }),
];

#[test]
fn each_rule_refuses_its_bad_request() {
    let mut broken = judged(good()).check(BROKEN);
    let mut issued = IssuedReasoning::default();
    let signature = issued.issue("gpt-5.1", &json!({}));
    let foreign = issued.issue("gpt-5", &json!({}));
    assert_eq!(foreign, "c2lnbmVk00000001");
    let mut body = good();
    body["input"][1]["encrypted_content"] = json!(signature);
    let judged = RuleFixture {
        issued: Some(&issued),
        ..judged(body)
    };
    broken.extend(judged.check(&[
        ("reasoning of the same model", |it| {
            it["input"][1]["encrypted_content"] = json!("c2lnbmVk00000001")
        }),
        ("reasoning of the same model", |it| {
            it["input"][1]["encrypted_content"] = json!("c2ln")
        }),
    ]));
    assert_complete(ApiFormat::Responses, &broken);
}
