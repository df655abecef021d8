//! Converts schemas to the small subsets of Gemini and Moonshot: every schema has one type or is an `anyOf`, and there
//! are no references.

use super::{
    SchemaDialect,
    root::{self, resolve, schemas_of},
    well_formed::TYPES,
};
use serde_json::{Map, Value, json};

/// Depth below which a schema is replaced by one that accepts anything.
const MAX_DEPTH: usize = 24;

/// Largest number of schemas in a converted schema: references may multiply.
const MAX_SCHEMAS: usize = 2000;

/// Description that counts as much as another schema. Unit: bytes.
const BYTES_PER_SCHEMA: usize = 100;

/// Longest list of values that is moved to a description. Unit: bytes.
const MAX_NOTE_BYTES: usize = 500;

impl SchemaDialect {
    /// Returns the keywords of a type in addition to `type` and `description`.
    fn keywords_of(self, kind: &str) -> &'static [&'static str] {
        match (kind, self) {
            ("object", Self::Moonshot) => &["properties", "required", "additionalProperties"],
            ("object", _) => &["properties", "required"],
            ("array", _) => &["items", "minItems", "maxItems"],
            ("string", Self::Moonshot) => &["enum", "minLength", "maxLength"],
            ("string", _) => &["enum"],
            ("integer" | "number", Self::Moonshot) => &["enum", "minimum", "maximum"],
            ("integer" | "number", _) => &["minimum", "maximum"],
            _ => &[],
        }
    }

    fn knows_keyword(self, kind: &str, keyword: &str) -> bool {
        ["type", "description"].contains(&keyword)
            || (self == Self::Moonshot && ["title", "default"].contains(&keyword))
            || self.keywords_of(kind).contains(&keyword)
    }
}

/// Returns true if a well-formed schema is within the subset of `dialect`.
pub(super) fn accepts(dialect: SchemaDialect, schema: &Value) -> bool {
    let Some(members) = schema.as_object() else {
        return false;
    };
    let all_accepted =
        |keyword| schemas_of(members, keyword).all(|schema| accepts(dialect, schema));
    let Some(kind) = members.get("type") else {
        let known = |keyword: &String| keyword == "anyOf" || dialect.knows_keyword("", keyword);
        return members.contains_key("anyOf") && members.keys().all(known) && all_accepted("anyOf");
    };
    let Some(kind) = kind.as_str() else {
        return false;
    };
    let known = |keyword: &String| dialect.knows_keyword(kind, keyword);
    let is_accepted = |schema: &Value| accepts(dialect, schema);
    members.keys().all(known)
        && (kind != "array" || members.get("items").is_some_and(is_accepted))
        && properties_of(members).all(|(_, schema)| is_accepted(schema))
        && members
            .get("additionalProperties")
            .is_none_or(|schema| schema.is_boolean() || is_accepted(schema))
        && names_of(members).all(|name| properties_of(members).any(|(known, _)| known == name))
        && members.get("enum").is_none_or(|values| {
            values.as_array().is_some_and(|values| {
                !values.is_empty() && values.iter().all(|value| is_choice(kind, value))
            })
        })
}

fn properties_of(members: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let properties = members.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten()
}

fn names_of(members: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let names = members.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

/// Returns true if a value may be among the choices of a type. Gemini refuses an empty text.
fn is_choice(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.as_str().is_some_and(|text| !text.is_empty()),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => false,
    }
}

/// Converts a well-formed schema for objects. `document` is the schema that references point into.
pub(super) fn convert(dialect: SchemaDialect, schema: &Value, document: &Value) -> Value {
    let mut converter = Converter {
        dialect,
        document,
        active: Vec::new(),
        left: MAX_SCHEMAS,
    };
    match schema {
        Value::Object(members) => Value::Object(converter.typed(members, "object", 0)),
        _ => json!({ "type": "object" }),
    }
}

struct Converter<'a> {
    dialect: SchemaDialect,
    document: &'a Value,
    /// References being followed.
    active: Vec<String>,
    /// Number of schemas that may still be converted.
    left: usize,
}

impl Converter<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Value {
        let Some(members) = schema.as_object() else {
            return anything(None);
        };
        let description = members.get("description").cloned();
        let text = description.as_ref().and_then(Value::as_str);
        let cost = 1 + text.map_or(0, str::len) / BYTES_PER_SCHEMA;
        self.left = self.left.saturating_sub(cost);
        if self.left == 0 || depth > MAX_DEPTH {
            return anything(description);
        }
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            return self.reference(reference, description, depth);
        }
        if is_object(members) || members.contains_key("allOf") {
            return self.object_or_parts(members, depth);
        }
        for union in ["anyOf", "oneOf"] {
            if members.contains_key(union) {
                return self.union(members, union, depth);
            }
        }
        if let Some(types) = members.get("type").and_then(Value::as_array) {
            let alternatives: Vec<Value> = types
                .iter()
                .filter_map(Value::as_str)
                .map(|kind| self.alternative(members, kind, depth))
                .collect();
            return any_of(alternatives, description);
        }
        match infer_type(members) {
            Some(kind) => Value::Object(self.typed(members, kind, depth)),
            None => {
                let mut members = members.clone();
                move_choices_to_description(&mut members);
                anything(members.remove("description"))
            }
        }
    }

    /// Replaces a reference by its target; a recursive one by a schema that accepts anything.
    fn reference(&mut self, reference: &str, description: Option<Value>, depth: usize) -> Value {
        let target = match self.active.iter().any(|active| active == reference) {
            true => None,
            false => resolve(self.document, reference).cloned(),
        };
        let Some(target) = target else {
            return anything(description);
        };
        self.active.push(reference.to_owned());
        let mut converted = self.schema(&target, depth + 1);
        self.active.pop();
        if let (Value::Object(members), Some(description)) = (&mut converted, description) {
            members.insert("description".to_owned(), description);
        }
        converted
    }

    /// Converts a schema for objects, with its unions merged, or another schema of several parts, of which the first
    /// that says something counts.
    fn object_or_parts(&mut self, members: &Map<String, Value>, depth: usize) -> Value {
        let whole = Value::Object(members.clone());
        let parts: Vec<&Value> = schemas_of(members, "allOf").collect();
        let resolved = |part: &Value| match part.get("$ref").and_then(Value::as_str) {
            Some(reference) => resolve(self.document, reference).cloned(),
            None => Some(part.clone()),
        };
        let resolved: Vec<Value> = parts.into_iter().filter_map(resolved).collect();
        let is_object_part = |part: &Value| part.as_object().is_some_and(is_object);
        if is_object(members) || resolved.iter().any(is_object_part) {
            let merged = root::merge(&whole, self.document, &mut self.left);
            return Value::Object(self.typed(&merged, "object", depth));
        }
        let mut flat = members.clone();
        flat.remove("allOf");
        for part in &resolved {
            for (keyword, value) in part.as_object().into_iter().flatten() {
                flat.entry(keyword.clone()).or_insert_with(|| value.clone());
            }
        }
        self.schema(&Value::Object(flat), depth + 1)
    }

    fn union(&mut self, members: &Map<String, Value>, keyword: &str, depth: usize) -> Value {
        let mut alternatives: Vec<Value> = Vec::new();
        for schema in schemas_of(members, keyword) {
            let mut schema = schema.clone();
            if let (Value::Object(alternative), Some(kind)) = (&mut schema, members.get("type"))
                && !alternative.contains_key("$ref")
            {
                alternative.entry("type").or_insert_with(|| kind.clone());
            }
            let converted = self.schema(&schema, depth + 1);
            if !alternatives.contains(&converted) {
                alternatives.push(converted);
            }
        }
        any_of(alternatives, members.get("description").cloned())
    }

    /// Converts a schema as if it had only this type, without its description.
    fn alternative(&mut self, members: &Map<String, Value>, kind: &str, depth: usize) -> Value {
        let mut members = members.clone();
        members.insert("type".to_owned(), json!(kind));
        members.remove("description");
        // Choices of other types would otherwise move to a description.
        if let Some(values) = members.get_mut("enum").and_then(Value::as_array_mut) {
            values.retain(|value| is_choice(kind, value));
        }
        Value::Object(self.typed(&members, kind, depth + 1))
    }

    fn typed(
        &mut self,
        members: &Map<String, Value>,
        kind: &str,
        depth: usize,
    ) -> Map<String, Value> {
        let mut members = members.clone();
        if let Some(value) = members.remove("const") {
            members.insert("enum".to_owned(), json!([value]));
        }
        if kind == "string" && self.dialect == SchemaDialect::Gemini {
            remove_empty_texts(&mut members);
        }
        let has_choices = members
            .get("enum")
            .and_then(Value::as_array)
            .is_some_and(|values| {
                !values.is_empty() && values.iter().all(|value| is_choice(kind, value))
            });
        if !has_choices || !self.dialect.keywords_of(kind).contains(&"enum") {
            move_choices_to_description(&mut members);
        }
        if let Some(Value::String(format)) = members.get("format") {
            let note = format!("Format: {format}.");
            append_to_description(&mut members, &note);
        }
        let (dialect, mut converted) = (self.dialect, Map::new());
        converted.insert("type".to_owned(), json!(kind));
        if kind == "array" {
            let items = self.items(&members, depth);
            converted.insert("items".to_owned(), items);
        }
        for (keyword, value) in members {
            let value = match keyword.as_str() {
                "type" | "items" => continue,
                name if !dialect.knows_keyword(kind, name) => continue,
                "properties" => self.properties(&value, depth),
                "additionalProperties" if !value.is_boolean() => self.schema(&value, depth + 1),
                _ => value,
            };
            converted.insert(keyword, value);
        }
        let required: Vec<Value> = names_of(&converted)
            .filter(|name| properties_of(&converted).any(|(known, _)| known == name))
            .map(Value::from)
            .collect();
        match required.is_empty() {
            true => converted.remove("required"),
            false => converted.insert("required".to_owned(), Value::Array(required)),
        };
        converted
    }

    fn properties(&mut self, properties: &Value, depth: usize) -> Value {
        let properties = properties.as_object().into_iter().flatten();
        let convert =
            |(name, schema): (&String, &Value)| (name.clone(), self.schema(schema, depth + 1));
        Value::Object(properties.map(convert).collect())
    }

    /// Returns the schema of all elements; of a tuple, the schemas of its places.
    fn items(&mut self, members: &Map<String, Value>, depth: usize) -> Value {
        let mut schemas: Vec<Value> = Vec::new();
        let places = schemas_of(members, "prefixItems");
        let rest = members.get("items").filter(|items| items.is_object());
        for schema in places.chain(rest) {
            let converted = self.schema(schema, depth + 1);
            if !schemas.contains(&converted) {
                schemas.push(converted);
            }
        }
        any_of(schemas, None)
    }
}

/// Returns a schema that accepts what one of `alternatives` accepts; anything if there are none.
fn any_of(mut alternatives: Vec<Value>, description: Option<Value>) -> Value {
    let mut schema = match alternatives.len() {
        0 => return anything(description),
        1 => alternatives.remove(0),
        _ => json!({ "anyOf": alternatives }),
    };
    if let (Value::Object(members), Some(description)) = (&mut schema, description) {
        members.insert("description".to_owned(), description);
    }
    schema
}

/// Returns a schema for values of all types.
fn anything(description: Option<Value>) -> Value {
    let mut schema = json!({ "anyOf": [
        { "type": "string" },
        { "type": "number" },
        { "type": "boolean" },
        { "type": "object" },
        { "type": "array", "items": { "type": "string" } },
    ] });
    if let (Value::Object(members), Some(description)) = (&mut schema, description) {
        members.insert("description".to_owned(), description);
    }
    schema
}

fn is_object(members: &Map<String, Value>) -> bool {
    match members.get("type") {
        Some(kind) => kind == "object",
        None => ["properties", "required"]
            .iter()
            .any(|it| members.contains_key(*it)),
    }
}

/// Returns the only type that a schema names or implies.
fn infer_type(members: &Map<String, Value>) -> Option<&'static str> {
    if let Some(kind) = members.get("type").and_then(Value::as_str) {
        return TYPES.iter().find(|known| **known == kind).copied();
    }
    let has = |keywords: &[&str]| keywords.iter().any(|it| members.contains_key(*it));
    let choices = members.get("enum").and_then(Value::as_array);
    let choice = members.get("const").or_else(|| choices?.first());
    match choice {
        Some(Value::String(_)) => Some("string"),
        Some(Value::Bool(_)) => Some("boolean"),
        Some(Value::Number(number)) if number.is_f64() => Some("number"),
        Some(Value::Number(_)) => Some("integer"),
        Some(Value::Array(_)) => Some("array"),
        Some(Value::Object(_)) => Some("object"),
        Some(Value::Null) => None,
        None if has(&["additionalProperties", "patternProperties"]) => Some("object"),
        None if has(&["items", "prefixItems", "minItems", "maxItems"]) => Some("array"),
        None if has(&["minLength", "maxLength", "pattern", "format"]) => Some("string"),
        None if has(&["minimum", "maximum", "multipleOf"]) => Some("number"),
        None => None,
    }
}

fn remove_empty_texts(members: &mut Map<String, Value>) {
    if let Some(values) = members.get_mut("enum").and_then(Value::as_array_mut) {
        values.retain(|value| value != "");
    }
}

/// Tells the model in words which values are allowed.
fn move_choices_to_description(members: &mut Map<String, Value>) {
    let choices = match (members.remove("enum"), members.remove("const")) {
        (Some(Value::Array(choices)), _) if !choices.is_empty() => choices,
        (_, Some(only)) => vec![only],
        (_, None) => return,
    };
    let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
    let mut note = format!("Allowed values: {}.", choices.join(", "));
    note.truncate(note.floor_char_boundary(MAX_NOTE_BYTES));
    append_to_description(members, &note);
}

fn append_to_description(members: &mut Map<String, Value>, note: &str) {
    let description = match members.get("description").and_then(Value::as_str) {
        Some(text) if !text.is_empty() => format!("{text} {note}"),
        Some(_) | None => note.to_owned(),
    };
    members.insert("description".to_owned(), Value::String(description));
}
