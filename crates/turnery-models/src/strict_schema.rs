//! Tells whether a provider can make a model's arguments fit a schema: providers accept only part of JSON Schema for that.

use serde_json::{Map, Value};
use turnery_engine::ToolSchema;

/// Depth of nested values, and number of properties, that all providers accept.
const MAX_DEPTH: usize = 5;
const MAX_PROPERTIES: usize = 100;

/// Returns true if a tool's schema is to be enforced, and providers can do so.
pub(crate) fn is_enforceable(schema: &ToolSchema) -> bool {
    schema.is_enforced() && is_strict(schema)
}

/// Returns true if the providers that constrain arguments accept the schema: every object is closed and requires all of
/// its properties, and no keyword is used that one of them lacks.
fn is_strict(schema: &Value) -> bool {
    let mut properties = 0;
    is_strict_at(schema, 0, &mut properties) && properties <= MAX_PROPERTIES
}

fn is_strict_at(schema: &Value, depth: usize, properties: &mut usize) -> bool {
    let Some(schema) = schema.as_object() else {
        return false;
    };
    // A schema without type accepts anything, which cannot be constrained.
    let has_form = ["type", "enum", "const", "anyOf"]
        .iter()
        .any(|name| schema.contains_key(*name));
    has_form
        && depth <= MAX_DEPTH
        && (!may_be(schema, "object") || is_closed(schema))
        && (!may_be(schema, "array") || schema.contains_key("items"))
        && schema
            .iter()
            .all(|(keyword, value)| match keyword.as_str() {
                "type"
                | "required"
                | "additionalProperties"
                | "enum"
                | "const"
                | "title"
                | "description" => true,
                "items" => is_strict_at(value, depth + 1, properties),
                "anyOf" => value.as_array().is_some_and(|choices| {
                    choices
                        .iter()
                        .all(|choice| is_strict_at(choice, depth + 1, properties))
                }),
                "properties" => value.as_object().is_some_and(|fields| {
                    *properties += fields.len();
                    fields
                        .values()
                        .all(|field| is_strict_at(field, depth + 1, properties))
                }),
                _ => false,
            })
}

/// Returns true if the schema accepts values of a type.
fn may_be(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|it| it == kind),
        Some(named) => named == kind,
        None => kind == "object" && schema.contains_key("properties"),
    }
}

/// Returns true if objects of the schema have its properties, all of them, and no others.
fn is_closed(schema: &Map<String, Value>) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    schema.get("additionalProperties") == Some(&Value::Bool(false))
        && properties.is_some_and(|properties| {
            properties.keys().all(|name| {
                required.is_some_and(|required| required.iter().any(|it| it == name.as_str()))
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ModelInfo, ModelName, ModelRequest, Thinking, anthropic::Anthropic, dialect::ApiDialect,
        openai::OpenAi, responses::Responses,
    };
    use serde_json::json;
    use turnery_engine::ToolSpec;

    fn object(properties: Value, required: Value) -> Value {
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false
        })
    }

    #[test]
    fn closed_objects_are_strict() {
        let text = json!({"type": ["string", "null"], "description": "why"});
        let list = json!({"type": "array", "items": object(json!({"a": text}), json!(["a"]))});
        let choice = json!({"anyOf": [{"const": 1}, {"enum": ["x", "y"]}]});
        let schema = object(
            json!({"list": list, "choice": choice}),
            json!(["list", "choice"]),
        );
        assert!(is_strict(&schema));
    }

    #[test]
    fn schemas_that_a_provider_refuses_are_not_strict() {
        let nested = |depth| {
            (0..depth).fold(
                json!({"type": "string"}),
                |inner, _| json!({"type": "array", "items": inner}),
            )
        };
        assert!(is_strict(&nested(MAX_DEPTH)));
        let many = |count: usize| {
            let names: Vec<String> = (0..count).map(|number| format!("p{number}")).collect();
            let properties: Map<String, Value> = names
                .iter()
                .map(|name| (name.clone(), json!({"type": "string"})))
                .collect();
            object(Value::from(properties), json!(names))
        };
        assert!(is_strict(&many(MAX_PROPERTIES)));
        for schema in [
            json!(true),
            json!({}),
            json!({"description": "anything"}),
            json!({"type": "object"}),
            json!({"type": ["array", "null"]}),
            json!({"type": "object", "properties": {}, "required": []}),
            json!({"properties": {"a": {"type": "string"}}, "type": ["object", "null"]}),
            object(
                json!({"a": {"type": "string"}, "b": {"type": "string"}}),
                json!(["a"]),
            ),
            object(json!({"a": {}}), json!(["a"])),
            json!({"type": "string", "minLength": 1}),
            json!({"type": "integer", "minimum": 1}),
            json!({"type": "array", "items": {"type": "string"}, "minItems": 2}),
            json!({"type": "array", "items": {"$ref": "#"}}),
            json!({"oneOf": [{"type": "string"}], "type": "string"}),
            json!({"type": "string", "$defs": {}}),
            nested(MAX_DEPTH + 1),
            many(MAX_PROPERTIES + 1),
        ] {
            assert!(!is_strict(&schema), "{schema}");
        }
    }

    /// Returns for each tool of a request whether it is marked as strict: one whose schema is to be enforced, one whose
    /// schema is not, one whose schema cannot be enforced, and one whose schema is changed for Claude.
    fn strict_tools(dialect: &impl ApiDialect, model: &str) -> Vec<bool> {
        let closed = object(json!({"value": {"type": "string"}}), json!(["value"]));
        let open = json!({"type": "object"});
        let renamed = object(json!({"user id": {"type": "string"}}), json!(["user id"]));
        let mut request = ModelRequest::single_question(
            "s".into(),
            "",
            "m",
            "question".to_owned(),
            Thinking::Default,
        );
        let tool = |schema| ToolSpec {
            name: "finish".to_owned(),
            description: String::new(),
            schema,
        };
        request.tools = [
            tool(ToolSchema::from(closed.clone()).enforced()),
            tool(closed.into()),
            tool(ToolSchema::from(open).enforced()),
            tool(ToolSchema::from(renamed).enforced()),
        ]
        .into();
        let info = ModelInfo::new(ModelName::new("p", model), "p");
        let body = dialect.test_body(&info, &request);
        let body: Value = serde_json::from_slice(&body).unwrap();
        let tools = body["tools"].as_array().unwrap();
        let marks = tools.iter().map(|tool| match tool.get("function") {
            Some(function) => function.get("strict").cloned(),
            None => tool.get("strict").cloned(),
        });
        marks.map(|mark| mark == Some(Value::Bool(true))).collect()
    }

    /// Servers of the same API elsewhere may refuse the mark, and so do older models.
    // proves: ANTHROPIC-54, ANTHROPIC-78, CHAT-54, CHAT-78, RESPONSES-54, RESPONSES-78
    #[test]
    fn schemas_are_enforced_where_provider_and_model_can() {
        let enforced = [true, false, false, false];
        let not_enforced = [false; 4];
        let openai = |url| strict_tools(&OpenAi::new(url, "gpt-5", false), "gpt-5");
        let by_openai = [true, false, false, true];
        assert_eq!(openai("https://api.openai.com/v1"), by_openai);
        assert_eq!(openai("http://127.0.0.1:11434/v1"), not_enforced);
        assert_eq!(openai("https://api.deepseek.com/v1"), not_enforced);
        let responses = |url| strict_tools(&Responses::new(url, false), "gpt-5");
        assert_eq!(responses("https://api.openai.com/v1"), by_openai);
        assert_eq!(responses("https://h.openai.azure.com/openai/v1"), by_openai);
        assert_eq!(responses("http://127.0.0.1:11434/v1"), not_enforced);
        let anthropic = |url, model| strict_tools(&Anthropic::new(url), model);
        let official = "https://api.anthropic.com";
        assert_eq!(anthropic(official, "claude-sonnet-4-6"), enforced);
        assert_eq!(
            anthropic(official, "claude-3-7-sonnet-latest"),
            not_enforced
        );
        let other = "https://models.example.com/anthropic";
        assert_eq!(anthropic(other, "claude-sonnet-4-6"), not_enforced);
    }
}
