//! Builds minimal instances of JSON schemas, for required tool arguments that a case does not give, and for
//! requests that want JSON.

use super::request::array_items;
use serde_json::{Map, Value, json};

/// Limit on nested schemas and references; schemas may refer to themselves.
const MAX_REF_DEPTH: usize = 16;

/// Returns a short value of the type that a schema asks for, with required members only. Limits on length and patterns
/// are ignored.
pub(super) fn minimal_instance(schema: &Value) -> Value {
    instance_at_depth(schema, schema, 0)
}

/// Returns the type of a schema in lower case; of several types, the first that is not null.
pub(super) fn schema_type(schema: &Value) -> String {
    let named = match &schema["type"] {
        Value::String(kind) => Some(kind.as_str()),
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .find(|k| *k != "null"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    };
    if let Some(named) = named {
        return named.to_lowercase();
    }
    let choices = ["anyOf", "oneOf"]
        .iter()
        .flat_map(|word| array_items(&schema[*word]));
    if let Some(choice) = choices.map(schema_type).find(|kind| kind != "null") {
        return choice;
    }
    let fallback = if schema["properties"].is_object() {
        "object"
    } else {
        "string"
    };
    fallback.to_owned()
}

fn instance_at_depth(schema: &Value, root: &Value, depth: usize) -> Value {
    if depth > MAX_REF_DEPTH {
        return Value::Null;
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#'));
        return target.map_or(Value::Null, |target| {
            instance_at_depth(target, root, depth + 1)
        });
    }
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    if let Some(first) = array_items(&schema["enum"]).first() {
        return first.clone();
    }
    if let Some(value) = schema.get("default").filter(|value| !value.is_null()) {
        return value.clone();
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        if let Some(first) = array_items(&schema[word]).first() {
            return instance_at_depth(first, root, depth + 1);
        }
    }
    match schema_type(schema).as_str() {
        "object" => {
            let required = array_items(&schema["required"])
                .iter()
                .filter_map(Value::as_str);
            let fields = required.map(|name| {
                let field = instance_at_depth(&schema["properties"][name], root, depth + 1);
                (name.to_owned(), field)
            });
            Value::Object(fields.collect::<Map<_, _>>())
        }
        "array" if schema["minItems"].as_u64().unwrap_or(0) > 0 => {
            json!([instance_at_depth(&schema["items"], root, depth + 1)])
        }
        "array" => json!([]),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        "boolean" => json!(false),
        "null" => Value::Null,
        _ => json!("conformance"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_has_only_required_members() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "mode": {"enum": ["fast", "slow"]},
                "depth": {"type": ["integer", "null"], "minimum": 3},
                "deep": {"$ref": "#/definitions/deep"},
                "many": {"type": "ARRAY", "minItems": 1, "items": {"type": "BOOLEAN"}},
                "unasked": {"type": "string"},
            },
            "required": ["path", "mode", "depth", "deep", "many"],
            "definitions": {"deep": {"anyOf": [{"const": "x"}, {"type": "null"}]}},
        });
        assert_eq!(
            minimal_instance(&schema),
            json!({"path": "conformance", "mode": "fast", "depth": 3, "deep": "x", "many": [false]})
        );
    }

    #[test]
    fn recursive_schema_terminates() {
        let schema = json!({"$ref": "#"});
        assert_eq!(minimal_instance(&schema), Value::Null);
    }
}
