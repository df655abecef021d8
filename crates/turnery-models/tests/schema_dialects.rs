//! Tests over a real socket that an odd schema of one tool reaches each provider in a form that it accepts (quirk 55).

mod server;

use serde_json::{Value, json};
use server::{ModelServer, call_for_deltas, event_response, hello_request, serve, tool_call};
use turnery_engine::ToolSpec;
use turnery_models::{Api, ModelRequest};

/// A response of the Messages API that calls `find` with a property under its changed name.
const ANTHROPIC_CALL: &str = r#"data: {"type":"message_start","message":{"model":"claude-sonnet-4-5","usage":{"input_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"find","input":{}}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"user_id-9b55b418\": \"a\", "}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\"limit\": 2}"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":1}}

data: {"type":"message_stop"}

"#;

const CHAT_TEXT: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n";

/// Returns a request with the tool `find`, whose schema no provider accepts as it is.
fn odd_request() -> ModelRequest {
    let mut request = hello_request();
    let schema = json!({
        "type": "object",
        "properties": {"user id": {"$ref": "#/$defs/id", "description": "Whose."}, "limit": null},
        "anyOf": [{"required": ["user id"]}, {"required": ["limit"]}],
        "$defs": {"id": {"type": "string"}},
    });
    request.tools = [ToolSpec::new("find", "Finds.", schema)].into();
    request
}

async fn first_tool(server: &ModelServer, api: Api, model: &str) -> Value {
    let model = server.model_with_retries(api, model, 0);
    let response = call_for_deltas(&*model, odd_request()).await.0;
    response.expect("a response");
    server.bodies().remove(0)["tools"][0].clone()
}

// proves: ANTHROPIC-55
#[tokio::test]
async fn anthropic_property_names_go_and_come_back() {
    let server = serve(vec![event_response(ANTHROPIC_CALL)]).await;
    let model = server.model_with_retries(Api::Anthropic, "claude-sonnet-4-5", 0);
    let response = call_for_deltas(&*model, odd_request()).await.0;
    assert_eq!(
        response.expect("a response").content,
        [tool_call(
            "toolu_1",
            "find",
            json!({"user id": "a", "limit": 2})
        )]
    );
    assert_eq!(
        server.bodies()[0]["tools"][0]["input_schema"],
        json!({
            "type": "object",
            "properties": {
                "user_id-9b55b418": {"$ref": "#/$defs/id", "description": "Whose."},
                "limit": {},
            },
            "$defs": {"id": {"type": "string"}},
        })
    );
}

// proves: CHAT-55
#[tokio::test]
async fn chat_schema_depends_on_the_model() {
    let anything = json!({"anyOf": [
        {"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"},
        {"type": "array", "items": {"type": "string"}},
    ]});
    let merged = json!({
        "type": "object",
        "properties": {
            "user id": {"$ref": "#/$defs/id", "description": "Whose."},
            "limit": {},
        },
        "$defs": {"id": {"type": "string"}},
    });
    let inlined = json!({
        "type": "object",
        "properties": {
            "user id": {"type": "string", "description": "Whose."},
            "limit": anything,
        },
    });
    for (model, expected) in [("qwen3", merged), ("moonshotai/kimi-k2.6", inlined)] {
        let server = serve(vec![event_response(CHAT_TEXT)]).await;
        let tool = first_tool(&server, Api::OpenAi, model).await;
        assert_eq!(tool["function"]["parameters"], expected, "{model}");
    }
}

// proves: RESPONSES-55
#[tokio::test]
async fn responses_schema_has_no_union_at_its_root() {
    let body =
        "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n";
    let server = serve(vec![event_response(body)]).await;
    let tool = first_tool(&server, Api::OpenAiResponses, "gpt-5.1").await;
    assert_eq!(
        tool["parameters"],
        json!({
            "type": "object",
            "properties": {
                "user id": {"$ref": "#/$defs/id", "description": "Whose."},
                "limit": {},
            },
            "$defs": {"id": {"type": "string"}},
        })
    );
}

// proves: GEMINI-55
#[tokio::test]
async fn gemini_gets_parameters_as_json_schema() {
    let body = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"x\"}]},\"finishReason\":\"STOP\"}]}\n\n";
    let server = serve(vec![event_response(body)]).await;
    let tool = first_tool(&server, Api::Gemini, "gemini-3-flash-preview").await;
    let declared = &tool["functionDeclarations"][0]["parametersJsonSchema"];
    assert_eq!(
        declared["properties"]["user id"],
        json!({"type": "string", "description": "Whose."})
    );
    assert_eq!(declared["anyOf"], Value::Null);
}
