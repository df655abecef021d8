//! Checks and repairs the values of keywords: providers validate schemas against the meta-schema of JSON Schema 2020-12
//! (<https://json-schema.org/draft/2020-12/schema>), while servers send `properties: null` or keywords of older drafts.

use serde_json::{Map, Value};
use std::collections::HashSet;

/// Types of JSON Schema.
pub(super) const TYPES: [&str; 7] = [
    "object", "array", "string", "integer", "number", "boolean", "null",
];

/// Form that the value of a keyword must have.
#[derive(Clone, Copy)]
enum KeywordForm {
    Schema,
    /// At least one schema.
    SchemaList,
    /// Schemas by name.
    SchemaMap,
    /// A type or several different types.
    Type,
    /// Different names.
    Names,
    /// Lists of names by name.
    NamesMap,
    /// Schemas or lists of names by name.
    Dependencies,
    Number,
    PositiveNumber,
    Count,
    Flag,
    Flags,
    Text,
    List,
    /// A URI reference without a fragment.
    Id,
    Anchor,
}

/// Returns the form that the meta-schema demands of a keyword; `None` if anything goes.
fn keyword_form(keyword: &str) -> Option<KeywordForm> {
    Some(match keyword {
        "items"
        | "contains"
        | "additionalProperties"
        | "propertyNames"
        | "not"
        | "if"
        | "then"
        | "else"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contentSchema" => KeywordForm::Schema,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => KeywordForm::SchemaList,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            KeywordForm::SchemaMap
        }
        "type" => KeywordForm::Type,
        "required" => KeywordForm::Names,
        "dependentRequired" => KeywordForm::NamesMap,
        "dependencies" => KeywordForm::Dependencies,
        "maximum" | "exclusiveMaximum" | "minimum" | "exclusiveMinimum" => KeywordForm::Number,
        "multipleOf" => KeywordForm::PositiveNumber,
        "maxLength" | "minLength" | "maxItems" | "minItems" | "maxContains" | "minContains"
        | "maxProperties" | "minProperties" => KeywordForm::Count,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => KeywordForm::Flag,
        "$vocabulary" => KeywordForm::Flags,
        "title" | "description" | "format" | "pattern" | "contentEncoding" | "contentMediaType"
        | "$comment" | "$ref" | "$schema" | "$dynamicRef" | "$recursiveRef" => KeywordForm::Text,
        "enum" | "examples" => KeywordForm::List,
        "$id" => KeywordForm::Id,
        "$anchor" | "$dynamicAnchor" | "$recursiveAnchor" => KeywordForm::Anchor,
        _ => return None,
    })
}

/// Returns true if a schema and the schemas within it match the meta-schema.
pub(super) fn is_well_formed(schema: &Value) -> bool {
    match schema {
        Value::Bool(_) => true,
        Value::Object(members) => members
            .iter()
            .all(|(keyword, value)| keyword_form(keyword).is_none_or(|form| form.fits(value))),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

impl KeywordForm {
    fn fits(self, value: &Value) -> bool {
        let all = |fits: &dyn Fn(&Value) -> bool| {
            value
                .as_object()
                .is_some_and(|members| members.values().all(fits))
        };
        match self {
            Self::Schema => is_well_formed(value),
            Self::SchemaList => value
                .as_array()
                .is_some_and(|items| !items.is_empty() && items.iter().all(is_well_formed)),
            Self::SchemaMap => all(&is_well_formed),
            Self::Type => {
                is_type(value)
                    || value.as_array().is_some_and(|types| {
                        !types.is_empty() && types.iter().all(is_type) && are_different(types)
                    })
            }
            Self::Names => is_name_list(value),
            Self::NamesMap => all(&is_name_list),
            Self::Dependencies => all(&|it| is_name_list(it) || is_well_formed(it)),
            Self::Number => value.is_number(),
            Self::PositiveNumber => value.as_f64().is_some_and(|number| number > 0.0),
            Self::Count => {
                let is_whole = |number: f64| number >= 0.0 && number.fract() == 0.0;
                value.is_u64() || value.as_f64().is_some_and(is_whole)
            }
            Self::Flag => value.is_boolean(),
            Self::Flags => all(&Value::is_boolean),
            Self::Text => value.is_string(),
            Self::List => value.is_array(),
            Self::Id => value
                .as_str()
                .is_some_and(|id| !id.strip_suffix('#').unwrap_or(id).contains('#')),
            Self::Anchor => value.as_str().is_some_and(|anchor| {
                anchor.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                    && anchor
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
            }),
        }
    }

    /// Repairs a value. Returns false if nothing is left of it.
    fn repair(self, value: &mut Value) -> bool {
        match (self, &mut *value) {
            (Self::Schema, Value::Object(_)) => repair(value),
            (Self::SchemaList, Value::Array(items)) => items.iter_mut().for_each(repair),
            (Self::SchemaMap, Value::Object(members)) => members.values_mut().for_each(repair),
            (Self::Type, Value::Array(types)) => {
                types.retain(is_type);
                remove_repeated(types);
            }
            (Self::Names, Value::Array(names)) => {
                names.retain(Value::is_string);
                remove_repeated(names);
            }
            (
                Self::Schema
                | Self::SchemaList
                | Self::SchemaMap
                | Self::Type
                | Self::Names
                | Self::NamesMap
                | Self::Dependencies
                | Self::Number
                | Self::PositiveNumber
                | Self::Count
                | Self::Flag
                | Self::Flags
                | Self::Text
                | Self::List
                | Self::Id
                | Self::Anchor,
                _,
            ) => {}
        }
        self.fits(value)
    }
}

/// Makes a schema match the meta-schema: keywords with unusable values are dropped. Anything that is no schema becomes
/// one that accepts every value.
pub(super) fn repair(schema: &mut Value) {
    match schema {
        Value::Bool(_) => {}
        Value::Object(members) => repair_members(members),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            *schema = Value::Object(Map::new());
        }
    }
}

fn repair_members(members: &mut Map<String, Value>) {
    // A list of schemas for the first elements, up to draft 2019-09.
    if members.get("items").is_some_and(Value::is_array)
        && let Some(items) = members.remove("items")
    {
        members.entry("prefixItems").or_insert(items);
    }
    members.retain(|keyword, value| keyword_form(keyword).is_none_or(|form| form.repair(value)));
}

fn is_type(value: &Value) -> bool {
    value.as_str().is_some_and(|name| TYPES.contains(&name))
}

fn is_name_list(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|names| names.iter().all(Value::is_string) && are_different(names))
}

fn are_different(items: &[Value]) -> bool {
    let texts: HashSet<_> = items.iter().filter_map(Value::as_str).collect();
    texts.len() == items.len()
}

/// Keeps the first of equal texts.
fn remove_repeated(texts: &mut Vec<Value>) {
    let mut seen = HashSet::new();
    texts.retain(|text| {
        text.as_str()
            .is_none_or(|text| seen.insert(text.to_owned()))
    });
}

/// Calls `visit` with every object among a schema and the schemas within it.
pub(super) fn visit_schemas<'a>(schema: &'a Value, visit: &mut dyn FnMut(&'a Map<String, Value>)) {
    let Some(members) = schema.as_object() else {
        return;
    };
    visit(members);
    for (keyword, value) in members {
        match (holds_schemas(keyword), value) {
            (Some(SchemaPlace::Direct), Value::Array(items)) => {
                items.iter().for_each(|it| visit_schemas(it, visit));
            }
            (Some(SchemaPlace::Direct), _) => visit_schemas(value, visit),
            (Some(SchemaPlace::Named), Value::Object(named)) => {
                named.values().for_each(|it| visit_schemas(it, visit));
            }
            (Some(SchemaPlace::Named) | None, _) => {}
        }
    }
}

/// Calls `change` with every object among a schema and the schemas within it.
pub(super) fn change_schemas(schema: &mut Value, change: &mut dyn FnMut(&mut Map<String, Value>)) {
    let Value::Object(members) = schema else {
        return;
    };
    change(members);
    for (keyword, value) in members {
        match (holds_schemas(keyword), value) {
            (Some(SchemaPlace::Direct), Value::Array(items)) => {
                items.iter_mut().for_each(|it| change_schemas(it, change));
            }
            (Some(SchemaPlace::Direct), value) => change_schemas(value, change),
            (Some(SchemaPlace::Named), Value::Object(named)) => {
                named.values_mut().for_each(|it| change_schemas(it, change));
            }
            (Some(SchemaPlace::Named) | None, _) => {}
        }
    }
}

/// Position of the schemas that a keyword holds.
#[derive(Clone, Copy)]
enum SchemaPlace {
    /// A schema or a list of schemas.
    Direct,
    /// Schemas by name.
    Named,
}

fn holds_schemas(keyword: &str) -> Option<SchemaPlace> {
    match keyword_form(keyword)? {
        KeywordForm::Schema | KeywordForm::SchemaList => Some(SchemaPlace::Direct),
        KeywordForm::SchemaMap | KeywordForm::Dependencies => Some(SchemaPlace::Named),
        KeywordForm::Type
        | KeywordForm::Names
        | KeywordForm::NamesMap
        | KeywordForm::Number
        | KeywordForm::PositiveNumber
        | KeywordForm::Count
        | KeywordForm::Flag
        | KeywordForm::Flags
        | KeywordForm::Text
        | KeywordForm::List
        | KeywordForm::Id
        | KeywordForm::Anchor => None,
    }
}
