//! Tests that each rule of Chat Completions refuses a bad request.

mod broken;

use broken::{BrokenRequest, RuleFixture, assert_complete, list, remove};
use model_api_rules::ApiFormat;
use serde_json::{Value, json};

/// A request that every server accepts.
fn good(model: &str) -> Value {
    json!({
        "model": model,
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_completion_tokens": 4000,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "Look."},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
                {"type": "input_audio", "input_audio": {"format": "wav", "data": "QUJD"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
            ]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "abcdefgh1", "type": "function", "function": {"name": "look", "arguments": "{}"}},
                {"id": "abcdefgh2", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}},
            ]},
            {"role": "tool", "tool_call_id": "abcdefgh1", "content": "A field."},
            {"role": "tool", "tool_call_id": "abcdefgh2", "content": "A sky."},
            {"role": "assistant", "content": "I see."},
            {"role": "user", "content": "And?"},
        ],
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {
            "type": "object",
            "properties": {"at": {"type": "integer"}},
        }}}],
    })
}

fn judged(host: Option<&'static str>, good: Value) -> RuleFixture<'static> {
    RuleFixture {
        host,
        ..RuleFixture::new(ApiFormat::Chat, "/v1/chat/completions", good)
    }
}

fn messages(body: &mut Value) -> &mut Vec<Value> {
    list(body, "messages")
}

const OF_ANY: &[BrokenRequest] = &[
    ("known fields", |it| it["max_output_tokens"] = json!(1)),
    ("known fields", |it| {
        it["messages"][2]["phase"] = json!("commentary")
    }),
    ("known fields", |it| {
        it["messages"][2]["tool_calls"][0]["index"] = json!(0)
    }),
    ("known fields", |it| {
        it["messages"][1]["content"][0]["detail"] = json!("auto")
    }),
    ("known fields", |it| {
        it["tools"][0]["function"]["input_schema"] = json!({})
    }),
    ("known fields", |it| remove(it, "stream")),
    ("roles", |it| it["messages"][5]["role"] = json!("model")),
    ("one system message", |it| {
        it["messages"][5]["role"] = json!("system")
    }),
    ("content is there", |it| {
        it["messages"][5]["content"] = json!(null)
    }),
    ("content is there", |it| {
        it["messages"][5]["content"] = json!(" ")
    }),
    ("content is there", |it| {
        it["messages"][1]["content"][0]["text"] = json!("")
    }),
    ("content is there", |it| {
        it["messages"][3]["content"] = json!("")
    }),
    ("no empty list", |it| {
        it["messages"][5]["tool_calls"] = json!([])
    }),
    ("results follow calls", |it| {
        messages(it).remove(4);
    }),
    ("results follow calls", |it| {
        messages(it).swap(4, 5);
    }),
    ("results follow calls", |it| {
        it["messages"][4]["tool_call_id"] = json!("abcdefgh1")
    }),
    ("unique call ids", |it| {
        it["messages"][2]["tool_calls"][1]["id"] = json!("abcdefgh1");
        it["messages"][4]["tool_call_id"] = json!("abcdefgh1");
    }),
    ("arguments are JSON objects", |it| {
        it["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!("{oops");
    }),
    ("arguments are JSON objects", |it| {
        it["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!("[]");
    }),
    ("names of earlier calls", |it| {
        it["messages"][2]["tool_calls"][0]["function"]["name"] = json!("functions.look");
    }),
    ("pictures of the user only", |it| {
        it["messages"][3]["content"] =
            json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}]);
    }),
    ("media types", |it| {
        it["messages"][1]["content"][1]["image_url"]["url"] = json!("data:image/bmp;base64,QUJD")
    }),
    ("media types", |it| {
        it["messages"][1]["content"][1]["image_url"]["url"] = json!("QUJD")
    }),
    ("media types", |it| {
        it["messages"][1]["content"][2]["input_audio"]["format"] = json!("ogg")
    }),
    ("media types", |it| {
        it["messages"][1]["content"][3]["file"]["file_data"] = json!("data:text/csv;base64,QUJD")
    }),
    ("form of tool names", |it| {
        it["tools"][0]["function"]["name"] = json!("look around")
    }),
    ("root of tool schemas", |it| {
        it["tools"][0]["function"]["parameters"]["oneOf"] = json!([])
    }),
    ("strict schemas", |it| {
        it["tools"][0]["function"]["strict"] = json!(true)
    }),
    ("strict schemas", |it| {
        it["tools"][0]["function"]["strict"] = json!(true);
        it["tools"][0]["function"]["parameters"]["additionalProperties"] = json!(false);
    }),
    ("tools for calls", |it| remove(it, "tools")),
    ("one output limit", |it| {
        it["max_tokens"] = json!(4000);
        it["model"] = json!("m1");
    }),
];

/// Common ground of unknown servers.
const OF_OTHERS: &[BrokenRequest] = &[
    ("root of tool schemas", |it| {
        remove(&mut it["tools"][0]["function"]["parameters"], "properties")
    }),
    ("root of tool schemas", |it| {
        it["tools"][0]["function"]["parameters"]["enum"] = json!([{}])
    }),
    ("reasoning effort of the model", |it| {
        it["model"] = json!("gpt-5.1");
        it["reasoning_effort"] = json!("minimal");
    }),
    ("no temperature for reasoning models", |it| {
        it["model"] = json!("o4-mini");
        it["temperature"] = json!(0.5);
    }),
    ("cache marks for Claude only", |it| {
        it["messages"][1]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
    }),
];

const OF_OPENAI: &[BrokenRequest] = &[
    ("OpenAI: call ids up to 40 characters", |it| {
        let long = "x".repeat(41);
        it["messages"][2]["tool_calls"][0]["id"] = json!(long);
        it["messages"][3]["tool_call_id"] = json!(long);
    }),
    ("OpenAI: own fields of messages only", |it| {
        it["messages"][5]["reasoning_content"] = json!("Hm")
    }),
    ("OpenAI: own fields of messages only", |it| {
        it["enable_thinking"] = json!(true)
    }),
    ("OpenAI: no reasoning with tools", |it| {
        it["model"] = json!("gpt-5.4");
        it["reasoning_effort"] = json!("low");
    }),
    ("OpenAI: no reasoning with tools", |it| {
        it["model"] = json!("gpt-5.6-terra")
    }),
    ("limit of reasoning models", |it| {
        it["model"] = json!("gpt-5");
        remove(it, "max_completion_tokens");
        it["max_tokens"] = json!(4000);
    }),
    ("reasoning effort of the model", |it| {
        it["reasoning_effort"] = json!("low")
    }),
];

const OF_MISTRAL: &[BrokenRequest] = &[
    ("Mistral: form of call ids", |it| {
        it["messages"][2]["tool_calls"][0]["id"] = json!("call_1");
        it["messages"][3]["tool_call_id"] = json!("call_1");
    }),
    ("Mistral: no user after a tool", |it| {
        messages(it).remove(5);
    }),
    ("Mistral: the user or a tool comes last", |it| {
        messages(it).pop();
    }),
];

/// A request of a model that thinks, with the reasoning of its call.
fn thinking(model: &str) -> Value {
    let mut body = good(model);
    body["messages"][2]["reasoning_content"] = json!("");
    body
}

#[test]
fn each_rule_refuses_its_bad_request() {
    let mut broken = judged(None, good("m1")).check(&[OF_ANY, OF_OTHERS].concat());
    let openai = judged(Some("api.openai.com"), good("gpt-4o"));
    broken.extend(openai.check(&[&OF_ANY[2..OF_ANY.len() - 1], OF_OPENAI].concat()));
    broken.extend(judged(Some("api.mistral.ai"), good("mistral-large")).check(OF_MISTRAL));
    for (host, rule) in [
        ("api.groq.com", "Groq: own fields only"),
        ("api.cerebras.ai", "Cerebras: own fields only"),
    ] {
        broken.extend(judged(Some(host), good("gpt-oss-120b")).check(&[
            (rule, |it| {
                it["messages"][5]["reasoning_content"] = json!("Hm")
            }),
            (rule, |it| it["messages"][5]["reasoning"] = json!("Hm")),
        ]));
    }
    for (host, model, rule) in [
        (
            "api.deepseek.com",
            "deepseek-v4-pro",
            "DeepSeek: reasoning of calls",
        ),
        ("api.moonshot.ai", "kimi-k2.6", "Kimi: reasoning of calls"),
    ] {
        let lacking: BrokenRequest = (rule, |it| {
            remove(&mut it["messages"][2], "reasoning_content")
        });
        broken.extend(judged(Some(host), thinking(model)).check(&[lacking]));
        let mut off = good(model);
        off["thinking"] = json!({"type": "disabled"});
        broken.extend(judged(Some(host), off).check(&[]));
    }
    broken.extend(check_without_calls());
    broken.extend(check_cache_marks());
    assert_complete(ApiFormat::Chat, &broken);
}

fn check_without_calls() -> Vec<&'static str> {
    let body = json!({"model": "m1", "messages": [{"role": "user", "content": "Hello?"}]});
    let broken = judged(None, body).check(&[
        ("choice needs tools", |it| it["tool_choice"] = json!("none")),
        ("choice needs tools", |it| {
            it["parallel_tool_calls"] = json!(true)
        }),
        ("no empty list", |it| it["tools"] = json!([])),
        ("roles", |it| it["messages"] = json!([])),
    ]);
    broken.into_iter().collect()
}

fn check_cache_marks() -> Vec<&'static str> {
    let mark = json!({"type": "ephemeral"});
    let mut body = good("anthropic/claude-sonnet-4.5");
    for message in 0..2 {
        body["messages"][message]["content"] = json!([
            {"type": "text", "text": "a", "cache_control": mark},
            {"type": "text", "text": "b", "cache_control": mark},
        ]);
    }
    let broken = judged(Some("openrouter.ai"), body).check(&[("four cache marks", |it| {
        it["messages"][3]["content"] =
            json!([{"type": "text", "text": "c", "cache_control": {"type": "ephemeral"}}]);
    })]);
    broken.into_iter().collect()
}
