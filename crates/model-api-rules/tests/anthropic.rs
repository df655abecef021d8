//! Tests that each rule of Anthropic Messages refuses a bad request.

mod broken;

use broken::{BrokenRequest, RuleFixture, assert_complete, list, remove};
use model_api_rules::{ApiFormat, ApiRequest, IssuedReasoning, violations};
use serde_json::{Value, json};

/// A request with everything that the API accepts.
fn good(model: &str, thinking: Value) -> Value {
    json!({
        "model": model,
        "max_tokens": 4000,
        "stream": true,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "Look."},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
                {"type": "document", "title": "a.pdf", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm", "signature": "c2ln"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "a"}},
                {"type": "tool_use", "id": "toolu_2", "name": "look", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [
                    {"type": "text", "text": "A field."},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "QUJD"}},
                ]},
                {"type": "tool_result", "tool_use_id": "toolu_2", "is_error": true},
                {"type": "text", "text": "And?", "cache_control": {"type": "ephemeral"}},
            ]},
        ],
        "tools": [{"name": "look", "description": "Looks.", "cache_control": {"type": "ephemeral"}, "input_schema": {
            "type": "object",
            "properties": {"at": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        }}],
        "thinking": thinking,
    })
}

fn judged(good: Value) -> RuleFixture<'static> {
    RuleFixture::new(ApiFormat::Anthropic, "/v1/messages", good)
}

const OF_ANY: &[BrokenRequest] = &[
    ("known fields", |it| it["store"] = json!(false)),
    ("known fields", |it| it["messages"][0]["name"] = json!("a")),
    ("known fields", |it| {
        it["messages"][1]["content"][2]["index"] = json!(0)
    }),
    ("known fields", |it| {
        it["messages"][0]["content"][0]["type"] = json!("input_text")
    }),
    ("known fields", |it| {
        it["messages"][1]["content"][2]["input"] = json!("{}")
    }),
    ("known fields", |it| {
        it["tools"][0]["parameters"] = json!({})
    }),
    ("known fields", |it| {
        it["output_config"] = json!({"effort": "minimal"})
    }),
    ("required fields", |it| it["model"] = json!("")),
    ("no empty text", |it| {
        it["messages"][0]["content"][0]["text"] = json!(" \n")
    }),
    ("no empty text", |it| it["system"][0]["text"] = json!("")),
    ("media types", |it| {
        it["messages"][0]["content"][1]["source"]["media_type"] = json!("image/bmp")
    }),
    ("media types", |it| {
        it["messages"][0]["content"][1]["source"]["data"] = json!("QUJ")
    }),
    ("media types", |it| {
        it["messages"][0]["content"][2]["source"]["media_type"] = json!("text/html")
    }),
    ("results come first", |it| {
        let blocks = list(&mut it["messages"][2], "content");
        blocks.swap(1, 2);
    }),
    ("results follow calls", |it| {
        list(&mut it["messages"][2], "content").remove(1);
    }),
    ("results answer calls", |it| {
        let copy = it["messages"][2]["content"][0].clone();
        list(&mut it["messages"][2], "content").insert(0, copy);
    }),
    ("form of call ids", |it| {
        it["messages"][1]["content"][2]["id"] = json!("call|1");
        it["messages"][2]["content"][0]["tool_use_id"] = json!("call|1");
    }),
    ("form of call ids", |it| {
        let long = "x".repeat(65);
        it["messages"][1]["content"][2]["id"] = json!(long);
        it["messages"][2]["content"][0]["tool_use_id"] = json!(long);
    }),
    ("unique call ids", |it| {
        let mut turns = it["messages"].as_array().expect("the good request has it")[1..].to_vec();
        list(it, "messages").append(&mut turns);
        remove(&mut it["messages"][4]["content"][2], "cache_control");
        it["messages"][4]["content"][0]["content"] = json!([{"type": "text", "text": "Again."}]);
    }),
    ("tools for calls", |it| remove(it, "tools")),
    ("form of tool names", |it| {
        it["tools"][0]["name"] = json!("a.b")
    }),
    ("form of tool names", |it| {
        let tool = it["tools"][0].clone();
        list(it, "tools").push(tool);
    }),
    ("names of earlier calls", |it| {
        it["messages"][1]["content"][2]["name"] = json!("look around")
    }),
    ("root of tool schemas", |it| {
        it["tools"][0]["input_schema"]["anyOf"] = json!([])
    }),
    ("root of tool schemas", |it| {
        it["tools"][0]["input_schema"]["type"] = json!("string")
    }),
    ("property names", |it| {
        it["tools"][0]["input_schema"]["properties"] = json!({"$x": {}})
    }),
    ("property names", |it| {
        it["tools"][0]["input_schema"]["properties"]["at"] =
            json!({"type": "array", "items": {"properties": {"a b": {}}}});
    }),
    ("property names", |it| {
        it["tools"][0]["input_schema"]["$defs"] = json!({"a b": {"properties": {"a b": {}}}})
    }),
    ("property names", |it| {
        it["tools"][0]["input_schema"]["definitions"] = json!({"a b": {"properties": {"a b": {}}}})
    }),
    ("property names", |it| {
        it["tools"][0]["input_schema"]["properties"]["at"] =
            json!({"prefixItems": [{}, {"properties": {"a b": {}}}]});
    }),
    ("property names", |it| {
        it["tools"][0]["input_schema"]["properties"]["at"] =
            json!({"not": {"properties": {"a b": {}}}});
    }),
    ("thinking is signed", |it| {
        it["messages"][1]["content"][0]["signature"] = json!("")
    }),
    ("four cache marks", |it| {
        it["messages"][0]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
        it["messages"][0]["content"][1]["cache_control"] = json!({"type": "ephemeral"});
    }),
];

const OF_BUDGET: &[BrokenRequest] = &[
    ("thinking budget", |it| {
        it["thinking"]["budget_tokens"] = json!(4000)
    }),
    ("thinking budget", |it| {
        it["thinking"]["budget_tokens"] = json!(1023)
    }),
    ("no temperature with thinking", |it| {
        it["temperature"] = json!(0.5)
    }),
    ("no forced call with thinking", |it| {
        it["tool_choice"] = json!({"type": "any"})
    }),
    ("a round begins with thinking", |it| {
        list(&mut it["messages"][1], "content").remove(0);
    }),
    ("no thinking after switching it off", |it| {
        remove(it, "thinking")
    }),
    ("thinking of the model", |it| {
        it["thinking"] = json!({"type": "adaptive"})
    }),
];

const OF_ADAPTIVE: &[BrokenRequest] = &[
    ("thinking of the model", |it| {
        it["thinking"] = json!({"type": "enabled", "budget_tokens": 2000})
    }),
    ("thinking of the model", |it| {
        it["thinking"] = json!({"type": "between_tools"})
    }),
    ("no temperature with thinking", |it| {
        it["temperature"] = json!(0.5);
        it["thinking"] = json!({"type": "disabled"});
    }),
];

/// Without results, so that the order of messages can change.
fn talk() -> Value {
    json!({
        "model": "claude-opus-4-8",
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hello?"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm", "signature": "c2ln"},
                {"type": "text", "text": "Yes?"},
            ]},
            {"role": "user", "content": "Go on."},
        ],
    })
}

const OF_TALK: &[BrokenRequest] = &[
    ("required fields", |it| remove(it, "max_tokens")),
    ("the user begins", |it| {
        list(it, "messages").remove(0);
    }),
    ("roles alternate", |it| {
        let copy = it["messages"][0].clone();
        list(it, "messages").insert(0, copy);
    }),
    ("roles alternate", |it| {
        it["messages"][1]["role"] = json!("system")
    }),
    ("no prefilled answer", |it| {
        list(it, "messages").pop();
    }),
    ("thinking is not last", |it| {
        list(&mut it["messages"][1], "content").pop();
    }),
    ("choice needs tools", |it| {
        it["tool_choice"] = json!({"type": "auto"})
    }),
    ("required fields", |it| {
        it["messages"][0]["content"] = json!([])
    }),
];

#[test]
fn each_rule_refuses_its_bad_request() {
    let budget = good(
        "claude-haiku-4-5",
        json!({"type": "enabled", "budget_tokens": 2000}),
    );
    let adaptive = good(
        "claude-opus-4-8",
        json!({"type": "adaptive", "display": "summarized"}),
    );
    let mut broken = judged(budget).check(&[OF_ANY, OF_BUDGET].concat());
    broken.extend(judged(adaptive).check(&[OF_ANY, OF_ADAPTIVE].concat()));
    broken.extend(judged(talk()).check(OF_TALK));
    broken.extend(check_reasoning());
    broken.insert(check_version());
    assert_complete(ApiFormat::Anthropic, &broken);
}

fn check_version() -> &'static str {
    let body = talk();
    let request = ApiRequest {
        headers: "content-type: application/json",
        ..ApiRequest::new(ApiFormat::Anthropic, "/v1/messages", &body)
    };
    let found = violations(&request);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].rule
}

/// Signed thinking comes back to its model, after what it was signed with.
fn check_reasoning() -> Vec<&'static str> {
    let mut first = talk();
    first["messages"] = json!([first["messages"][0]]);
    let mut issued = IssuedReasoning::default();
    let signature = issued.issue("claude-opus-4-8", &first);
    let foreign = issued.issue("claude-opus-4-6", &first);
    assert_ne!(signature, foreign);
    let mut good = talk();
    good["messages"][1]["content"][0]["signature"] = json!(signature);
    // Marks move, and earlier thinking is not signed along.
    good["messages"][0]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
    let judged = RuleFixture {
        issued: Some(&issued),
        ..judged(good)
    };
    let broken = judged.check(&[
        ("thinking of the same model", |it| {
            it["messages"][1]["content"][0]["signature"] = json!("c2lnbmVk99999999");
        }),
        ("thinking of the same model", |it| {
            it["messages"][1]["content"][0]["signature"] = json!("c2lnbmVk00000001");
        }),
        ("thinking of the same conversation", |it| {
            it["messages"][0]["content"][0]["text"] = json!("Hello!");
        }),
        ("thinking of the same conversation", |it| {
            it["system"] = json!("Be brief.")
        }),
        ("thinking of the same conversation", |it| {
            it["tools"] = json!([{"name": "a", "input_schema": {"type": "object"}}]);
        }),
    ]);
    broken.into_iter().collect()
}
