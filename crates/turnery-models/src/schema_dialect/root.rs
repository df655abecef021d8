//! Merges the unions of a schema for objects into one plain object schema.

use serde_json::{Map, Value, json};

/// Keywords that OpenAI or Anthropic refuse at the root.
const REFUSED_KEYWORDS: [&str; 10] = [
    "anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else", "$ref",
];

/// Largest number of schemas merged into the root: references may multiply.
pub(super) const MAX_MERGED: usize = 500;

/// Returns true if the schema has the type `object` and no keyword that is refused at the root.
pub(super) fn is_plain_object(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
        && !REFUSED_KEYWORDS
            .iter()
            .any(|keyword| schema.get(keyword).is_some())
}

/// Merges a schema for objects: it has the properties of all alternatives, and requires those that every alternative
/// requires. `document` is the schema that references point into, `left` the number of schemas that may still be merged.
pub(super) fn merge(schema: &Value, document: &Value, left: &mut usize) -> Map<String, Value> {
    let mut merger = Merger {
        document,
        active: Vec::new(),
        left,
    };
    merger.merge(schema).into_members()
}

/// Parts of a merged schema.
#[derive(Default)]
struct MergedObject {
    /// Schemas of each property; several if alternatives differ.
    properties: Vec<(String, Vec<Value>)>,
    required: Vec<String>,
    /// All other keywords.
    others: Map<String, Value>,
}

impl MergedObject {
    /// Adds a property that must meet both schemas; the first is kept.
    fn add_property(&mut self, name: &str, schemas: Vec<Value>) {
        if !self.properties.iter().any(|(known, _)| known == name) {
            self.properties.push((name.to_owned(), schemas));
        }
    }

    fn require(&mut self, name: String) {
        if !self.required.contains(&name) {
            self.required.push(name);
        }
    }

    /// Adds a schema that objects must meet too.
    fn add(&mut self, other: Self) {
        for (name, schemas) in other.properties {
            self.add_property(&name, schemas);
        }
        other.required.into_iter().for_each(|it| self.require(it));
        for (keyword, value) in other.others {
            // It would exclude the properties of the others.
            if keyword != "additionalProperties" {
                self.others.entry(keyword).or_insert(value);
            }
        }
    }

    /// Adds schemas of which objects meet at least one.
    fn add_alternatives(&mut self, alternatives: Vec<Self>) {
        let mut union = Self::default();
        let mut common: Option<Vec<String>> = None;
        for one in alternatives {
            for (name, schemas) in one.properties {
                match union
                    .properties
                    .iter_mut()
                    .find(|(known, _)| *known == name)
                {
                    Some((_, known)) => {
                        let new = schemas.into_iter().filter(|it| !known.contains(it));
                        let new: Vec<Value> = new.collect();
                        known.extend(new);
                    }
                    None => union.properties.push((name, schemas)),
                }
            }
            common = Some(match common {
                None => one.required,
                Some(common) => {
                    let is_common = |it: &String| one.required.contains(it);
                    common.into_iter().filter(is_common).collect()
                }
            });
        }
        union.required = common.unwrap_or_default();
        self.add(union);
    }

    fn into_members(self) -> Map<String, Value> {
        let mut members = self.others;
        members.insert("type".to_owned(), json!("object"));
        let property = |(name, mut schemas): (String, Vec<Value>)| match schemas.len() {
            1 => (name, schemas.remove(0)),
            _ => (name, json!({ "anyOf": schemas })),
        };
        let properties: Map<String, Value> = self.properties.into_iter().map(property).collect();
        members.insert("properties".to_owned(), Value::Object(properties));
        if !self.required.is_empty() {
            members.insert("required".to_owned(), json!(self.required));
        }
        members
    }
}

struct Merger<'a> {
    document: &'a Value,
    /// References being followed.
    active: Vec<&'a str>,
    /// Number of schemas that may still be merged.
    left: &'a mut usize,
}

impl<'a> Merger<'a> {
    fn merge(&mut self, schema: &'a Value) -> MergedObject {
        let mut merged = MergedObject::default();
        let Some(members) = schema.as_object() else {
            return merged;
        };
        *self.left = self.left.saturating_sub(1);
        if *self.left == 0 {
            return merged;
        }
        for (keyword, value) in members {
            match keyword.as_str() {
                "properties" => {
                    for (name, property) in value.as_object().into_iter().flatten() {
                        merged.add_property(name, vec![property.clone()]);
                    }
                }
                "required" => {
                    let names = value.as_array().into_iter().flatten();
                    let names = names.filter_map(Value::as_str);
                    names.for_each(|name| merged.require(name.to_owned()));
                }
                name if REFUSED_KEYWORDS.contains(&name) => {}
                _ => {
                    merged.others.insert(keyword.clone(), value.clone());
                }
            }
        }
        if let Some(reference) = members.get("$ref").and_then(Value::as_str)
            && !self.active.contains(&reference)
            && let Some(target) = resolve(self.document, reference)
        {
            self.active.push(reference);
            let target = self.merge(target);
            self.active.pop();
            merged.add(target);
        }
        for schema in schemas_of(members, "allOf") {
            let part = self.merge(schema);
            merged.add(part);
        }
        for union in ["anyOf", "oneOf"] {
            let alternatives = schemas_of(members, union);
            let alternatives = alternatives.map(|it| self.merge(it)).collect();
            merged.add_alternatives(alternatives);
        }
        merged
    }
}

/// Returns the schemas in the list of a keyword.
pub(super) fn schemas_of<'a>(
    members: &'a Map<String, Value>,
    keyword: &str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    let list = members.get(keyword).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// Returns the schema that a reference within the document names.
pub(super) fn resolve<'a>(document: &'a Value, reference: &str) -> Option<&'a Value> {
    document.pointer(reference.strip_prefix('#')?)
}
