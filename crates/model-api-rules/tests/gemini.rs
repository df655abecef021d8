//! Tests that each rule of Gemini refuses a bad request.

mod broken;

use broken::{BrokenRequest, RuleFixture, assert_complete, list, remove};
use model_api_rules::{ApiFormat, IssuedReasoning};
use serde_json::{Value, json};

fn good() -> Value {
    json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [
                {"text": "Look."},
                {"inlineData": {"mimeType": "image/png", "data": "QUJD"}},
                {"inlineData": {"mimeType": "application/pdf", "data": "JVBE"}},
            ]},
            {"role": "model", "parts": [
                {"text": "I look.", "thoughtSignature": "c2ln"},
                {"functionCall": {"id": "c1", "name": "look", "args": {}}, "thoughtSignature": "c2lnbg=="},
                {"functionCall": {"id": "c2", "name": "look_up", "args": {"at": 1}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "c1", "name": "look", "response": {"output": "A field."}}},
                {"functionResponse": {"id": "c2", "name": "look_up", "response": {"error": "No sky."}}},
            ]},
            {"role": "user", "parts": [{"text": "And?"}]},
        ],
        "tools": [{"functionDeclarations": [
            {"name": "look", "description": "Looks.", "parametersJsonSchema": {
                "type": "object",
                "properties": {
                    "at": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                    "kind": {"type": "string", "enum": ["near", "far"]},
                    "all": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["at"],
            }},
        ]}],
        "toolConfig": {"functionCallingConfig": {"mode": "NONE"}},
        "generationConfig": {"maxOutputTokens": 4000, "thinkingConfig": {"includeThoughts": true}},
    })
}

const GEMINI_3: &str = "/v1beta/models/gemini-3-flash-preview:streamGenerateContent?alt=sse";
const GEMINI_2: &str = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";

fn judged(path: &'static str, good: Value) -> RuleFixture<'static> {
    RuleFixture::new(ApiFormat::Gemini, path, good)
}

fn contents(body: &mut Value) -> &mut Vec<Value> {
    list(body, "contents")
}

fn schema(body: &mut Value) -> &mut Value {
    &mut body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]
}

fn thinking(body: &mut Value) -> &mut Value {
    &mut body["generationConfig"]["thinkingConfig"]
}

const OF_ANY: &[BrokenRequest] = &[
    ("known fields", |it| it["system_instruction"] = json!({})),
    ("known fields", |it| {
        it["generationConfig"]["max_output_tokens"] = json!(1)
    }),
    ("known fields", |it| thinking(it)["effort"] = json!("low")),
    ("known fields", |it| {
        it["tools"][0]["functionDeclarations"][0]["input_schema"] = json!({})
    }),
    ("known parts", |it| {
        it["contents"][1]["role"] = json!("assistant")
    }),
    ("known parts", |it| {
        it["contents"][1]["parts"][1]["functionCall"]["arguments"] = json!({})
    }),
    ("known parts", |it| {
        it["contents"][3]["parts"][0]["type"] = json!("text")
    }),
    ("known parts", |it| {
        it["contents"][3]["parts"] = json!([{"thoughtSignature": "c2ln"}])
    }),
    ("the user begins and ends", |it| {
        contents(it).remove(0);
    }),
    ("the user begins and ends", |it| {
        contents(it).push(json!({"role": "model", "parts": [{"text": "Yes."}]}));
    }),
    ("a turn of the model follows the user", |it| {
        contents(it).insert(1, json!({"role": "model", "parts": [{"text": "Yes."}]}));
    }),
    ("no empty part", |it| it["contents"][3]["parts"] = json!([])),
    ("no empty part", |it| {
        it["contents"][3]["parts"][0]["text"] = json!("")
    }),
    ("as many responses as calls", |it| {
        list(&mut it["contents"][2], "parts").pop();
    }),
    ("responses after calls only", |it| {
        let response = it["contents"][2]["parts"][0].clone();
        list(&mut it["contents"][3], "parts").push(response);
    }),
    ("responses in the order of calls", |it| {
        list(&mut it["contents"][2], "parts").swap(0, 1);
    }),
    ("responses in the order of calls", |it| {
        it["contents"][2]["parts"][0]["functionResponse"]["id"] = json!("c3");
    }),
    ("arguments and responses are objects", |it| {
        it["contents"][1]["parts"][1]["functionCall"]["args"] = json!("{}");
    }),
    ("arguments and responses are objects", |it| {
        it["contents"][2]["parts"][0]["functionResponse"]["response"] = json!("A field.");
    }),
    ("form of signatures", |it| {
        it["contents"][1]["parts"][0]["thoughtSignature"] = json!("call_1")
    }),
    ("media types", |it| {
        it["contents"][0]["parts"][1]["inlineData"]["mimeType"] = json!("image/gif")
    }),
    ("media types", |it| {
        it["contents"][0]["parts"][1]["inlineData"]["data"] = json!("")
    }),
    ("form of tool names", |it| {
        it["tools"][0]["functionDeclarations"][0]["name"] = json!("2look")
    }),
    ("form of tool names", |it| {
        let declaration = it["tools"][0]["functionDeclarations"][0].clone();
        list(&mut it["tools"][0], "functionDeclarations").push(declaration);
    }),
    ("names of earlier calls", |it| {
        it["contents"][1]["parts"][1]["functionCall"]["name"] = json!("look around");
        it["contents"][2]["parts"][0]["functionResponse"]["name"] = json!("look around");
    }),
    ("root of tool schemas", |it| {
        *schema(it) = json!({"type": "object", "anyOf": [{"type": "object"}]});
    }),
    ("subset of JSON Schema", |it| {
        schema(it)["properties"]["at"] = json!({"$ref": "#/a"})
    }),
    ("subset of JSON Schema", |it| {
        schema(it)["properties"]["at"] = json!({"type": ["integer", "null"]})
    }),
    ("subset of JSON Schema", |it| {
        schema(it)["properties"]["kind"]["enum"][0] = json!("")
    }),
    ("subset of JSON Schema", |it| {
        remove(&mut schema(it)["properties"]["all"], "items")
    }),
    ("subset of JSON Schema", |it| {
        schema(it)["required"] = json!(["more"])
    }),
    ("choice needs tools", |it| remove(it, "tools")),
    ("choice needs tools", |it| {
        it["toolConfig"]["functionCallingConfig"]["mode"] = json!("none")
    }),
];

const OF_3: &[BrokenRequest] = &[
    ("the first call is signed", |it| {
        remove(&mut it["contents"][1]["parts"][1], "thoughtSignature")
    }),
    ("thinking of the model", |it| {
        thinking(it)["thinkingLevel"] = json!("none")
    }),
    ("budget or level", |it| {
        thinking(it)["thinkingLevel"] = json!("low");
        thinking(it)["thinkingBudget"] = json!(100);
    }),
];

const OF_2: &[BrokenRequest] = &[
    ("media in responses since Gemini 3", |it| {
        let media = json!([{"inlineData": {"mimeType": "image/png", "data": "QUJD"}}]);
        it["contents"][2]["parts"][0]["functionResponse"]["parts"] = media;
    }),
    ("thinking of the model", |it| {
        thinking(it)["thinkingLevel"] = json!("low")
    }),
    ("thinking of the model", |it| {
        thinking(it)["thinkingBudget"] = json!(0)
    }),
    ("thinking of the model", |it| {
        thinking(it)["thinkingBudget"] = json!(40_000)
    }),
];

#[test]
fn each_rule_refuses_its_bad_request() {
    let mut broken = judged(GEMINI_3, good()).check(&[OF_ANY, OF_3].concat());
    broken.extend(judged(GEMINI_2, good()).check(&[OF_ANY, OF_2].concat()));
    let mut issued = IssuedReasoning::default();
    let signature = issued.issue("gemini-3-flash-preview", &json!({}));
    issued.issue("gemini-2.5-pro", &json!({}));
    let mut body = good();
    body["contents"][1]["parts"][0]["thoughtSignature"] = json!(signature);
    body["contents"][1]["parts"][1]["thoughtSignature"] = json!("skip_thought_signature_validator");
    let judged = RuleFixture {
        issued: Some(&issued),
        ..judged(GEMINI_3, body)
    };
    broken.extend(judged.check(&[
        ("signatures of the same model", |it| {
            it["contents"][1]["parts"][1]["thoughtSignature"] = json!("c2lnbmVk00000001");
        }),
        ("signatures of the same model", |it| {
            it["contents"][1]["parts"][1]["thoughtSignature"] = json!("c2ln");
        }),
    ]));
    assert_complete(ApiFormat::Gemini, &broken);
}
