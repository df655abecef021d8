//! Tests that the official hosts, which cannot be reached over loopback under their names, accept tools whose schemas they
//! are to enforce.

use crate::{
    ModelInfo, ModelName, ModelRequest, Thinking, anthropic::Anthropic, dialect::ApiDialect,
    openai::OpenAi, responses::Responses,
};
use model_api_rules::{ApiFormat, ApiRequest, judge, record};
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_engine::{ToolSchema, ToolSpec};

/// Tools with an enforced schema, with one that cannot be enforced, and with one that need not be.
fn request() -> ModelRequest {
    let closed = json!({
        "type": "object",
        "properties": {"at": {"type": ["integer", "null"]}, "kind": {"enum": ["near", "far"]}},
        "required": ["at", "kind"],
        "additionalProperties": false,
    });
    let open = json!({"type": "object", "properties": {"at": {"type": "integer"}}});
    let tool = |name: &str, schema: ToolSchema| ToolSpec {
        name: name.to_owned(),
        description: "Looks.".to_owned(),
        schema,
    };
    let text = "Look.".to_owned();
    let mut request =
        ModelRequest::single_question("s1".into(), "Be brief.", "m1", text, Thinking::Low);
    request.tools = Arc::new([
        tool("look", ToolSchema::from(closed.clone()).enforced()),
        tool("look_up", ToolSchema::from(open).enforced()),
        tool("look_down", ToolSchema::from(closed)),
    ]);
    request
}

/// Returns the tools of a request, which the host must accept.
fn accepted_tools(
    format: ApiFormat,
    host: &str,
    model: &str,
    dialect: &impl ApiDialect,
) -> Vec<Value> {
    let info = ModelInfo {
        reasoning: true,
        max_output: 8000,
        ..ModelInfo::new(ModelName::new("acme", model), "")
    };
    let body = dialect.test_body(&info, &request());
    let body: Value = serde_json::from_slice(&body).unwrap();
    let request = ApiRequest {
        host: Some(host),
        ..ApiRequest::new(format, "", &body)
    };
    assert_eq!(judge(&request), Ok(()), "{body}");
    record(&request).unwrap();
    body["tools"].as_array().unwrap().clone()
}

#[test]
fn official_hosts_accept_enforced_schemas() {
    let is_strict =
        |tool: &Value| tool.pointer("/function/strict").unwrap_or(&tool["strict"]) == true;
    let url = "https://api.openai.com/v1";
    let host = "api.openai.com";
    let claude = Anthropic::new("https://api.anthropic.com");
    for tools in [
        accepted_tools(
            ApiFormat::Anthropic,
            "api.anthropic.com",
            "claude-haiku-4-5",
            &claude,
        ),
        accepted_tools(
            ApiFormat::Chat,
            host,
            "gpt-5",
            &OpenAi::new(url, "gpt-5", false),
        ),
        accepted_tools(
            ApiFormat::Responses,
            host,
            "gpt-5",
            &Responses::new(url, false),
        ),
    ] {
        let strict: Vec<bool> = tools.iter().map(is_strict).collect();
        assert_eq!(strict, [true, false, false], "{tools:?}");
    }
}
