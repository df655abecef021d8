//! JSON Schema of a final value.

use jsonschema::{Validator, error::ValidationErrorKind};
use serde_json::Value;
use std::fmt;

/// Number of errors reported to the model at once.
const MAX_ERRORS: usize = 8;

/// Length of one reported error. Unit: bytes.
const MAX_ERROR_BYTES: usize = 300;

/// Checked JSON Schema of a final value (LASH-120).
pub struct ValueSchema {
    schema: Value,
    validator: Validator,
}

/// Error of a schema that is no JSON Schema, or refers to another document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a usable JSON Schema: {0}")]
pub struct ValueSchemaError(String);

impl fmt::Debug for ValueSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ValueSchema").field(&self.schema).finish()
    }
}

impl ValueSchema {
    /// Checks a schema. References to other documents are errors; nothing is fetched.
    pub fn new(schema: Value) -> Result<Self, ValueSchemaError> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err(ValueSchemaError("it must be an object".to_owned()));
        }
        match jsonschema::validator_for(&schema) {
            Ok(validator) => Ok(Self { schema, validator }),
            Err(error) if matches!(error.kind(), ValidationErrorKind::Referencing(_)) => {
                Err(ValueSchemaError(describe_references(&schema)))
            }
            Err(error) => {
                let place = error.instance_path().to_string();
                let reason = format!("{}{error}", place_prefix(&place));
                Err(ValueSchemaError(shorten(reason)))
            }
        }
    }

    /// Checks a value. The error lists what does not fit, one reason a line, without the value itself.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let mut errors = self.validator.iter_errors(value);
        let first = errors.by_ref().take(MAX_ERRORS).map(|error| {
            let place = error.instance_path().to_string();
            shorten(format!("{}{}", place_prefix(&place), error.masked()))
        });
        let mut lines: Vec<String> = first.collect();
        if lines.is_empty() {
            return Ok(());
        }
        if errors.next().is_some() {
            lines.push("and more".to_owned());
        }
        Err(lines.join("\n"))
    }

    /// Returns the schema as that of the property `value` of another schema: references to the root are moved.
    pub(super) fn as_value_property(&self) -> Value {
        let mut schema = self.schema.clone();
        // References within a schema that has an id are relative to it.
        if schema.get("$id").is_none() {
            move_references(&mut schema);
        }
        schema
    }
}

/// Returns the place of an error as the start of its message.
fn place_prefix(place: &str) -> String {
    match place {
        "" => String::new(),
        place => format!("{place}: "),
    }
}

fn shorten(mut text: String) -> String {
    if text.len() > MAX_ERROR_BYTES {
        text.truncate(text.floor_char_boundary(MAX_ERROR_BYTES));
        text.push('…');
    }
    text
}

/// Returns what is wrong with a schema of which a reference cannot be followed.
fn describe_references(schema: &Value) -> String {
    let mut targets = Vec::new();
    collect_references(schema, &mut targets);
    let elsewhere = targets.iter().find(|target| !target.starts_with('#'));
    shorten(match (elsewhere, targets.as_slice()) {
        (Some(target), _) => format!(
            "\"$ref\": {target:?} refers to another document, and none is fetched; copy what it refers to into \
             \"$defs\""
        ),
        (None, [target]) => format!("\"$ref\": {target:?} refers to a part that the schema lacks"),
        (None, targets) => format!(
            "one of its \"$ref\" refers to a part that the schema lacks: {}",
            targets.join(", ")
        ),
    })
}

fn collect_references<'s>(schema: &'s Value, targets: &mut Vec<&'s str>) {
    match schema {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(target) if name == "$ref" => targets.push(target),
                    // These hold data, not schemas.
                    _ if matches!(name.as_str(), "const" | "default" | "enum" | "examples") => {}
                    member => collect_references(member, targets),
                }
            }
        }
        Value::Array(members) => {
            for member in members {
                collect_references(member, targets);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn move_references(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(target) if name == "$ref" => {
                        if let Some(below) = target.strip_prefix('#')
                            && (below.is_empty() || below.starts_with('/'))
                        {
                            *target = format!("#/properties/value{below}");
                        }
                    }
                    // These hold data, not schemas.
                    _ if matches!(name.as_str(), "const" | "default" | "enum" | "examples") => {}
                    member => move_references(member),
                }
            }
        }
        Value::Array(members) => members.iter_mut().for_each(move_references),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // proves: LASH-120
    #[test]
    fn errors_name_place_and_reason_but_not_the_value() {
        let schema = ValueSchema::new(json!({
            "type": "object",
            "required": ["rating"],
            "properties": {"rating": {"type": "string"}, "next": {"$ref": "#"}},
            "additionalProperties": false
        }));
        let schema = schema.unwrap();
        assert_eq!(schema.check(&json!({"rating": "low"})), Ok(()));
        let complaint = schema.check(&json!({})).unwrap_err();
        assert_eq!(complaint, "\"rating\" is a required property");
        let long = "x".repeat(10_000);
        let value = json!({"rating": [long], "next": {"rating": "low", "secret": 1}});
        let complaint = schema.check(&value).unwrap_err();
        let mut lines: Vec<&str> = complaint.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines.len(), 2, "{complaint}");
        assert!(lines[0].starts_with("/next: "), "{complaint}");
        assert!(lines[1].starts_with("/rating: "), "{complaint}");
        assert!(!complaint.contains("xxx"), "{complaint}");
    }

    #[test]
    fn many_errors_are_cut() {
        let schema = ValueSchema::new(json!({"items": {"type": "string"}})).unwrap();
        let complaint = schema.check(&json!(vec![1; 100])).unwrap_err();
        assert_eq!(complaint.lines().count(), MAX_ERRORS + 1);
        assert!(complaint.ends_with("and more"));
    }

    #[test]
    fn unusable_schemas_are_refused() {
        for schema in [
            json!(1),
            json!("object"),
            json!({"type": "objekt"}),
            json!({"properties": []}),
            json!({"pattern": "("}),
            json!({"$ref": "https://example.org/schema.json"}),
            json!({"$ref": "#/$defs/absent"}),
        ] {
            let text = schema.to_string();
            let refused = ValueSchema::new(schema).expect_err(&text).to_string();
            let begin = "this is not a usable JSON Schema: ";
            assert!(refused.starts_with(begin), "{text}: {refused}");
        }
    }

    #[test]
    fn reference_that_cannot_be_followed_is_named() {
        for (target, expected) in [
            (
                "https://example.org/a.json",
                "\"$ref\": \"https://example.org/a.json\" refers to another document, and none is fetched; copy what it \
                 refers to into \"$defs\"",
            ),
            (
                "#/$defs/absent",
                "\"$ref\": \"#/$defs/absent\" refers to a part that the schema lacks",
            ),
        ] {
            let refused = ValueSchema::new(json!({"properties": {"a": {"$ref": target}}}));
            let error = refused.unwrap_err().to_string();
            assert_eq!(
                error,
                format!("this is not a usable JSON Schema: {expected}")
            );
        }
    }

    #[test]
    fn references_are_moved_with_the_schema() {
        let schema = ValueSchema::new(json!({
            "$defs": {"a": {"type": "integer"}},
            "properties": {
                "a": {"$ref": "#/$defs/a"},
                "b": {"$ref": "#"},
                "c": {"const": {"$ref": "#"}}
            }
        }));
        let moved = json!({"properties": {"value": schema.unwrap().as_value_property()}});
        let whole = jsonschema::validator_for(&moved).unwrap();
        assert!(whole.is_valid(&json!({"value": {"a": 1, "b": {"a": 2}}})));
        assert!(!whole.is_valid(&json!({"value": {"a": "1"}})));
        assert!(!whole.is_valid(&json!({"value": {"b": {"a": "2"}}})));
        let data = &moved["properties"]["value"]["properties"]["c"]["const"];
        assert_eq!(*data, json!({"$ref": "#"}));
    }
}
