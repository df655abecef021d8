//! Reads a JSON Schema into a tree with resolved references.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// JSON Schema keywords that the official schemas use; the default allows everything.
#[derive(Debug, Default)]
pub(super) struct Schema {
    /// Index of the referenced definition.
    pub(super) target: Option<usize>,
    pub(super) all_of: Vec<Schema>,
    pub(super) one_of: Vec<Schema>,
    pub(super) any_of: Vec<Schema>,
    pub(super) not: Option<Box<Schema>>,
    /// Names of the allowed types.
    pub(super) types: Option<Vec<String>>,
    pub(super) constant: Option<Value>,
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) min_length: Option<usize>,
    pub(super) min_items: Option<usize>,
    pub(super) required: Vec<String>,
    pub(super) properties: BTreeMap<String, Schema>,
    /// Schema of members without an entry in `properties`.
    pub(super) additional: Option<Box<Schema>>,
    pub(super) items: Option<Box<Schema>>,
    /// Name of the member whose constant value identifies this variant.
    pub(super) tag: Option<String>,
    /// Names of the members that identify the variants.
    pub(super) tags: BTreeSet<String>,
    /// Name of this schema if it is unstable: `Definition`, or `Definition.member` for a member or variant.
    pub(super) unstable: Option<String>,
    /// True if members without a schema are allowed.
    pub(super) is_open: bool,
}

impl Schema {
    /// Parses a schema. `indices` maps definition names to indices.
    pub(super) fn parse(schema: &Value, indices: &HashMap<&str, usize>) -> Self {
        let list = |key: &str| schema[key].as_array().into_iter().flatten();
        let inner = |value: &Value| Self::parse(value, indices);
        let member = |key: &str| schema.get(key).map(|value| Box::new(inner(value)));
        let variants = |key: &str| list(key).map(inner).collect::<Vec<_>>();
        let length = |key: &str| schema[key].as_u64()?.try_into().ok();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let properties = schema["properties"].as_object().into_iter().flatten();
        let mut tags = properties.clone();
        let tag = tags.find(|(_, member)| member.get("const").is_some());
        let target = schema["$ref"].as_str();
        let target = target.and_then(|target| target.strip_prefix("#/$defs/"));
        let (one_of, any_of) = (variants("oneOf"), variants("anyOf"));
        let branches = one_of.iter().chain(&any_of);
        Self {
            target: target.and_then(|name| indices.get(name).copied()),
            all_of: variants("allOf"),
            not: member("not"),
            types: match &schema["type"] {
                Value::String(name) => Some(vec![name.clone()]),
                Value::Array(names) => Some(names.iter().filter_map(text).collect()),
                _ => None,
            },
            constant: schema.get("const").cloned(),
            minimum: schema["minimum"].as_f64(),
            maximum: schema["maximum"].as_f64(),
            min_length: length("minLength"),
            min_items: length("minItems"),
            required: list("required").filter_map(text).collect(),
            properties: properties
                .map(|(key, member)| (key.clone(), inner(member)))
                .collect(),
            additional: member("additionalProperties"),
            items: member("items"),
            tag: tag.map(|(key, _)| key.clone()),
            tags: branches.filter_map(|branch| branch.tag.clone()).collect(),
            unstable: text(&schema["x-unstable"]),
            is_open: allows_unknown_members(schema),
            one_of,
            any_of,
        }
    }

    /// Iterates over the alternative variants.
    pub(super) fn variants(&self) -> impl Iterator<Item = &Self> {
        self.one_of.iter().chain(&self.any_of)
    }

    /// Returns the only value that a member may have.
    pub(super) fn constant_of(&self, key: &str) -> Option<&Value> {
        self.properties.get(key)?.constant.as_ref()
    }

    /// Returns true if the value lacks the tag or has this variant's tag: a cheap test before a full check.
    pub(super) fn fits_tag(&self, value: &Value) -> bool {
        let found = self
            .tag
            .as_deref()
            .and_then(|tag| Some((tag, value.get(tag)?)));
        found.is_none_or(|(tag, found)| self.constant_of(tag) == Some(found))
    }
}

/// Returns true if members that the schema does not name are allowed: explicitly, or because the schema has
/// no constraints at all.
fn allows_unknown_members(schema: &Value) -> bool {
    let allows = |key| schema.get(key).is_some_and(|others| *others != false);
    let mut words = schema.as_object().into_iter().flatten();
    allows("additionalProperties")
        || allows("unevaluatedProperties")
        || words.all(|(key, _)| matches!(&**key, "title" | "description" | "x-unstable"))
}
