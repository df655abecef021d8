//! Checks schemas of tools against the parts of JSON Schema that the APIs accept.

use crate::{
    check::{Check, require},
    json::{elements, text},
};
use serde_json::Value;

const UNIONS: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Requires an object at the root, without unions.
pub(crate) fn require_plain_root(at: &str, schema: &Value) -> Check {
    require(text(schema, "type") == "object", || {
        format!("{at}.type: Input should be 'object'")
    })?;
    let union = UNIONS.iter().find(|name| schema.get(**name).is_some());
    require(union.is_none(), || {
        format!("{at}: input_schema does not support oneOf, allOf, or anyOf at the top level")
    })?;
    let properties = schema.get("properties");
    require(properties.is_none_or(Value::is_object), || {
        format!("{at}.properties: an object is expected")
    })
}

/// Requires what OpenAI requires of the root beside: `properties`, and no choice of values.
pub(crate) fn require_openai_root(at: &str, schema: &Value) -> Check {
    require_plain_root(at, schema)?;
    require(schema.get("properties").is_some(), || {
        format!("Invalid schema for {at}: object schema missing properties")
    })?;
    let forbidden = ["enum", "const", "not"]
        .iter()
        .find(|name| schema.get(**name).is_some());
    require(forbidden.is_none(), || {
        format!("Invalid schema for {at}: schema must not have 'enum' or 'not' at the top level")
    })
}

/// Requires that a strict schema lists all properties as required and allows no others.
pub(crate) fn require_strict(at: &str, schema: &Value) -> Check {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        require(is_closed, || {
            format!("Invalid schema for {at}: 'additionalProperties' must be false")
        })?;
        let required = crate::json::list(schema, "required");
        let missing = properties
            .keys()
            .find(|name| !required.iter().any(|it| it == *name));
        require(missing.is_none(), || {
            format!("Invalid schema for {at}: 'required' must include every property")
        })?;
    }
    subschemas(schema)
        .into_iter()
        .try_for_each(|schema| require_strict(at, schema))
}

/// Calls `check` with each property name, at every depth.
pub(crate) fn for_each_property(schema: &Value, check: &mut dyn FnMut(&str) -> Check) -> Check {
    for name in properties(schema).map(|(name, _)| name) {
        check(name)?;
    }
    subschemas(schema)
        .into_iter()
        .try_for_each(|schema| for_each_property(schema, check))
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

/// Returns the schemas directly within a schema.
fn subschemas(schema: &Value) -> Vec<&Value> {
    let single = ["items", "additionalProperties", "not"].into_iter();
    let maps = ["properties", "$defs", "definitions"].into_iter();
    let lists = UNIONS.into_iter().chain(["prefixItems"]);
    let members = maps.filter_map(|name| schema.get(name)?.as_object());
    let mut all: Vec<&Value> = members.flat_map(|members| members.values()).collect();
    all.extend(single.filter_map(|name| schema.get(name)));
    all.extend(lists.flat_map(|name| crate::json::list(schema, name)));
    all
}

/// Keywords of Gemini's schemas that the product may use.
const GEMINI_KEYWORDS: [&str; 13] = [
    "type",
    "description",
    "properties",
    "required",
    "items",
    "minItems",
    "maxItems",
    "enum",
    "minimum",
    "maximum",
    "anyOf",
    "format",
    "nullable",
];

/// Requires a schema of Gemini's subset: one type or an `anyOf`, known keywords, texts as choices, known properties
/// required, items of arrays declared.
pub(crate) fn require_gemini(at: &str, schema: &Value) -> Check {
    let members = schema
        .as_object()
        .ok_or_else(|| format!("{at}: an object is expected"))?;
    let unknown = members
        .keys()
        .find(|name| !GEMINI_KEYWORDS.contains(&name.as_str()));
    require(unknown.is_none(), || {
        format!("{at}: Unknown name {unknown:?}")
    })?;
    let kind = text(schema, "type");
    let types = [
        "object", "array", "string", "integer", "number", "boolean", "null",
    ];
    let has_union = members.contains_key("anyOf");
    require(
        types.contains(&kind) || (has_union && kind.is_empty()),
        || format!("{at}: schema didn't specify the schema type field"),
    )?;
    let choices = elements(schema.get("enum").unwrap_or(&Value::Null)).iter();
    let has_other_choice = choices
        .clone()
        .any(|choice| choice.as_str().is_none_or(str::is_empty));
    require(
        !has_other_choice && (choices.len() == 0 || kind == "string"),
        || format!("{at}.enum: only allowed for STRING type, without an empty one"),
    )?;
    require(kind != "array" || members.contains_key("items"), || {
        format!("{at}.items: missing field")
    })?;
    for name in elements(schema.get("required").unwrap_or(&Value::Null)) {
        let is_known = properties(schema).any(|(known, _)| name == known);
        require(is_known, || {
            format!("{at}.required: property is not defined: {name}")
        })?;
    }
    subschemas(schema)
        .into_iter()
        .try_for_each(|schema| require_gemini(at, schema))
}
