//! Checks messages against the published JSON Schemas of protocol versions 1 and 2.
//!
//! The schemas use few JSON Schema keywords. A hand-written walk replaces a general validator because reports
//! must name the wrong member, and because the same walk finds members that the schema does not define.

mod schema;

use schema::Schema;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    ops::ControlFlow,
    sync::LazyLock,
};

/// Schema of one protocol version.
pub(crate) struct OfficialSchema {
    /// All definitions; index 0 allows everything and stands for unknown names.
    definitions: Vec<Schema>,
    /// Index of each definition, by name.
    indices: HashMap<String, usize>,
    /// Definition names, by side, method and kind of message.
    definition_names: HashMap<(Side, String, MessageKind), String>,
}

/// Side that handles a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Agent,
    Client,
    Both,
}

/// Kind of a JSON-RPC message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MessageKind {
    Request,
    Response,
    Notification,
}

impl MessageKind {
    /// Returns the kind of a message, derived from its members, or `None` if it has none.
    pub(crate) fn of(message: &Value) -> Option<Self> {
        let has = |key: &str| message.get(key).is_some();
        match (message["method"].is_string(), has("id")) {
            (true, true) => Some(Self::Request),
            (true, false) => Some(Self::Notification),
            (false, _) if has("result") || has("error") => Some(Self::Response),
            (false, _) => None,
        }
    }
}

/// Violation of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SchemaViolation {
    /// JSON pointer to the violating value, such as `/update/content`.
    pub(crate) path: String,
    /// Explanation of the violation.
    pub(crate) why: String,
}

/// Unknown members and unstable names found in a value.
#[derive(Default)]
struct ExtraParts<'a> {
    unknown_members: Vec<String>,
    unstable_names: BTreeSet<&'a str>,
}

/// Path to a part of a value, displayed as `/update/content/0`.
#[derive(Clone, Copy)]
enum JsonPointer<'a> {
    Root,
    Member(&'a JsonPointer<'a>, &'a str),
    Item(&'a JsonPointer<'a>, usize),
}

impl fmt::Display for JsonPointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(parent, key) => write!(f, "{parent}/{key}"),
            Self::Item(parent, index) => write!(f, "{parent}/{index}"),
        }
    }
}

impl JsonPointer<'_> {
    /// Returns a violation at this location.
    fn violation(self, why: String) -> SchemaViolation {
        let path = self.to_string();
        SchemaViolation { path, why }
    }
}

/// Receiver of schema violations. `Break` ends the walk before any text is rendered.
trait ViolationSink {
    fn add(&mut self, make: impl FnOnce(&mut Vec<SchemaViolation>)) -> ControlFlow<()>;
}

impl ViolationSink for Vec<SchemaViolation> {
    fn add(&mut self, make: impl FnOnce(&mut Self)) -> ControlFlow<()> {
        make(self);
        ControlFlow::Continue(())
    }
}

/// Ends the walk at the first violation.
struct StopAtFirst;

impl ViolationSink for StopAtFirst {
    fn add(&mut self, _: impl FnOnce(&mut Vec<SchemaViolation>)) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

const SCHEMAS: [&str; 2] = [
    include_str!(concat!(env!("OUT_DIR"), "/v1.json")),
    include_str!(concat!(env!("OUT_DIR"), "/v2.json")),
];
static V1: LazyLock<OfficialSchema> = LazyLock::new(|| OfficialSchema::parse(SCHEMAS[0]));
static V2: LazyLock<OfficialSchema> = LazyLock::new(|| OfficialSchema::parse(SCHEMAS[1]));

/// Returns the schema of a protocol version.
pub(crate) fn official_schema(version: u64) -> &'static OfficialSchema {
    match version {
        2 => &V2,
        _ => &V1,
    }
}

impl OfficialSchema {
    fn parse(text: &str) -> Self {
        // The schemas are embedded; a test checks that they parse.
        let schema: Value = serde_json::from_str(text).unwrap_or_default();
        let definitions = || schema["$defs"].as_object().into_iter().flatten();
        let indices = definitions().zip(1..);
        let indices: HashMap<_, _> = indices.map(|((name, _), index)| (&**name, index)).collect();
        let read = definitions().map(|(_, definition)| Schema::parse(definition, &indices));
        let mut names = HashMap::new();
        for (name, definition) in definitions() {
            let side = match definition["x-side"].as_str() {
                Some("agent") => Side::Agent,
                Some("client") => Side::Client,
                Some("protocol") => Side::Both,
                _ => continue,
            };
            let kinds = [
                ("Request", MessageKind::Request),
                ("Response", MessageKind::Response),
                ("Notification", MessageKind::Notification),
            ];
            let kind = kinds.into_iter().find(|(ending, _)| name.ends_with(ending));
            if let (Some((_, kind)), Some(method)) = (kind, definition["x-method"].as_str()) {
                names.insert((side, method.to_owned(), kind), name.clone());
            }
        }
        Self {
            definitions: std::iter::once(Schema::default()).chain(read).collect(),
            indices: indices
                .iter()
                .map(|(name, index)| ((*name).to_owned(), *index))
                .collect(),
            definition_names: names,
        }
    }

    /// Returns the name of the definition of a method's messages of this kind.
    pub(crate) fn definition_name(
        &self,
        side: Side,
        method: &str,
        kind: MessageKind,
    ) -> Option<&str> {
        let name = |side| self.definition_names.get(&(side, method.to_owned(), kind));
        name(side).or_else(|| name(Side::Both)).map(String::as_str)
    }

    /// Returns the violations of a definition by a value.
    pub(crate) fn violations(&self, name: &str, value: &Value) -> Vec<SchemaViolation> {
        let mut violations = Vec::new();
        let _ = self.check_value(
            self.definition(name),
            value,
            JsonPointer::Root,
            &mut violations,
        );
        violations
    }

    /// Returns the members that the definition lacks, outside `_meta`.
    pub(crate) fn unknown_members(&self, name: &str, value: &Value) -> Vec<String> {
        let mut looked = ExtraParts::default();
        self.collect_extras(
            &[self.definition(name)],
            value,
            JsonPointer::Root,
            &mut looked,
        );
        looked.unknown_members.sort();
        looked.unknown_members
    }

    /// Returns the unstable members and variants that a value of this definition uses, as `Definition.member`.
    pub(crate) fn unstable_uses(&self, name: &str, value: &Value) -> BTreeSet<&str> {
        let mut looked = ExtraParts::default();
        self.collect_extras(
            &[self.definition(name)],
            value,
            JsonPointer::Root,
            &mut looked,
        );
        looked.unstable_names
    }

    /// Returns true if the definition as a whole is unstable.
    pub(crate) fn is_unstable(&self, name: &str) -> bool {
        self.definition(name).unstable.is_some()
    }

    /// Returns the values of a member that tell the variants of a definition apart.
    pub(crate) fn variant_tags(&self, name: &str, key: &str) -> Vec<&str> {
        let branches = self.definition(name).variants();
        branches
            .filter_map(|branch| branch.constant_of(key)?.as_str())
            .collect()
    }

    /// Checks that a dotted path names a member of the definition; anything below `_meta` is allowed.
    ///
    /// # Errors
    /// If a member is unknown; the error has the path before it, with its dot, and the members allowed there.
    pub(crate) fn check_path<'a>(
        &'a self,
        name: &str,
        path: &'a str,
    ) -> Result<(), (&'a str, Vec<&'a str>)> {
        let mut schema = self.definition(name);
        let mut at = 0;
        for key in path.split('.') {
            if key == "_meta" {
                return Ok(());
            }
            let mut members = BTreeMap::new();
            self.members(schema, &mut members);
            let Some(member) = members.get(key) else {
                return Err((&path[..at], members.into_keys().collect()));
            };
            schema = member;
            at += key.len() + 1;
        }
        Ok(())
    }

    /// Collects all members that a value of this schema may have.
    fn members<'a>(&'a self, schema: &'a Schema, members: &mut BTreeMap<&'a str, &'a Schema>) {
        let own = schema.properties.iter();
        members.extend(own.map(|(key, member)| (key.as_str(), member)));
        let parts = schema.all_of.iter().chain(schema.variants());
        for part in parts.chain(self.target(schema)) {
            self.members(part, members);
        }
    }

    fn definition(&self, name: &str) -> &Schema {
        &self.definitions[self.indices.get(name).copied().unwrap_or_default()]
    }

    /// Returns the schema that this schema references.
    fn target(&self, schema: &Schema) -> Option<&Schema> {
        Some(&self.definitions[schema.target?])
    }

    fn is_valid(&self, schema: &Schema, value: &Value) -> bool {
        schema.fits_tag(value)
            && self
                .check_value(schema, value, JsonPointer::Root, &mut StopAtFirst)
                .is_continue()
    }

    fn check_value(
        &self,
        schema: &Schema,
        value: &Value,
        at: JsonPointer<'_>,
        violations: &mut impl ViolationSink,
    ) -> ControlFlow<()> {
        if let Some(target) = self.target(schema) {
            self.check_value(target, value, at, violations)?;
        }
        for part in &schema.all_of {
            self.check_value(part, value, at, violations)?;
        }
        let mut wrong =
            |why: &dyn Fn() -> String| violations.add(|list| list.push(at.violation(why())));
        if let Some(types) = &schema.types
            && !has_type(types, value)
        {
            return wrong(&|| format!("{} is no {}", short_json(value), types.join(" or ")));
        }
        if let Some(wanted) = &schema.constant
            && wanted != value
        {
            wrong(&|| format!("{} is not {wanted}", short_json(value)))?;
        }
        if let Some(number) = value.as_f64()
            && (schema.minimum.is_some_and(|bound| number < bound)
                || schema.maximum.is_some_and(|bound| number > bound))
        {
            wrong(&|| format!("{value} is out of bounds"))?;
        }
        let length = match value {
            Value::String(text) => schema.min_length.map(|least| (text.chars().count(), least)),
            Value::Array(items) => schema.min_items.map(|least| (items.len(), least)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        };
        if length.is_some_and(|(length, least)| length < least) {
            wrong(&|| format!("{} is too short", short_json(value)))?;
        }
        if let Some(not) = &schema.not
            && self.is_valid(not, value)
        {
            wrong(&|| format!("{} is a forbidden value", short_json(value)))?;
        }
        if let Some(object) = value.as_object() {
            for key in &schema.required {
                if !object.contains_key(key) {
                    wrong(&|| format!("{key} is missing"))?;
                }
            }
        }
        self.check_members(schema, value, at, violations)?;
        for variants in [&schema.one_of, &schema.any_of] {
            if !variants.is_empty() && !variants.iter().any(|variant| self.is_valid(variant, value))
            {
                violations.add(|list| self.add_variant_violations(variants, value, at, list))?;
            }
        }
        ControlFlow::Continue(())
    }

    fn check_members(
        &self,
        schema: &Schema,
        value: &Value,
        at: JsonPointer<'_>,
        violations: &mut impl ViolationSink,
    ) -> ControlFlow<()> {
        if let Some(object) = value.as_object() {
            for (key, value) in object {
                let member = schema.properties.get(key);
                if let Some(member) = member.or(schema.additional.as_deref()) {
                    self.check_value(member, value, JsonPointer::Member(&at, key), violations)?;
                }
            }
        }
        if let (Some(item), Some(values)) = (&schema.items, value.as_array()) {
            for (index, value) in values.iter().enumerate() {
                self.check_value(item, value, JsonPointer::Item(&at, index), violations)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Adds the violations of a value that fits no variant.
    fn add_variant_violations(
        &self,
        variants: &[Schema],
        value: &Value,
        at: JsonPointer<'_>,
        violations: &mut Vec<SchemaViolation>,
    ) {
        let tried = |variant| {
            let mut violations = Vec::new();
            let _ = self.check_value(variant, value, at, &mut violations);
            violations
        };
        // The variant selected by the tag gives the best explanation.
        let key = variants.iter().find_map(|variant| variant.tag.as_deref());
        if let Some(key) = key
            && let Some(found) = value.get(key)
        {
            let meant = |variant: &&Schema| variant.constant_of(key) == Some(found);
            if let Some(variant) = variants.iter().find(meant) {
                return violations.extend(tried(variant));
            }
            if variants
                .iter()
                .all(|variant| variant.tag.as_deref() == Some(key))
            {
                let why = format!("{} is none of the known ones", short_json(found));
                return violations.push(JsonPointer::Member(&at, key).violation(why));
            }
        }
        if variants.iter().all(|variant| variant.constant.is_some()) {
            let why = format!("{} is none of the known ones", short_json(value));
            return violations.push(at.violation(why));
        }
        // A value that is present is not meant to be null.
        let is_null = |variant: &Schema| {
            variant
                .types
                .as_ref()
                .is_some_and(|types| *types == ["null"])
        };
        let variants = variants.iter().filter(|variant| !is_null(variant));
        // Violations deeper inside mean that more of the variant matched.
        let nearest = variants.map(tried).max_by_key(|violations| {
            let depth = violations
                .iter()
                .map(|fault| fault.path.len())
                .min()
                .unwrap_or(0);
            (depth, std::cmp::Reverse(violations.len()))
        });
        violations.extend(nearest.unwrap_or_default());
    }

    fn collect_extras<'a>(
        &'a self,
        schemas: &[&'a Schema],
        value: &Value,
        at: JsonPointer<'_>,
        extras: &mut ExtraParts<'a>,
    ) {
        let mut all = Vec::new();
        for schema in schemas {
            self.collect_schemas(schema, value, &mut all);
        }
        let names = all.iter().filter_map(|schema| schema.unstable.as_deref());
        extras
            .unstable_names
            .extend(names.filter(|name| name.contains('.')));
        match value {
            Value::Object(object) => {
                let is_open = all.iter().any(|schema| schema.is_open)
                    || all.iter().all(|schema| schema.properties.is_empty());
                // The tag is known even if its value is not.
                let is_tag = |key: &str| all.iter().any(|schema| schema.tags.contains(key));
                for (key, value) in object.iter().filter(|(key, _)| !is_tag(key)) {
                    let members = all.iter().filter_map(|schema| schema.properties.get(key));
                    let members: Vec<&Schema> = members.collect();
                    let at = JsonPointer::Member(&at, key);
                    if !members.is_empty() {
                        if !value.is_null() {
                            self.collect_extras(&members, value, at, extras);
                        }
                    } else if !is_open {
                        extras.unknown_members.push(at.to_string());
                    }
                }
            }
            Value::Array(values) => {
                let item = all.iter().filter_map(|schema| schema.items.as_deref());
                let item: Vec<&Schema> = item.collect();
                for (index, value) in values.iter().enumerate() {
                    self.collect_extras(&item, value, JsonPointer::Item(&at, index), extras);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Collects all schemas that apply to this value.
    fn collect_schemas<'a>(&'a self, schema: &'a Schema, value: &Value, all: &mut Vec<&'a Schema>) {
        all.push(schema);
        if let Some(target) = self.target(schema) {
            self.collect_schemas(target, value, all);
        }
        for part in &schema.all_of {
            self.collect_schemas(part, value, all);
        }
        for branch in schema.variants() {
            if self.is_valid(branch, value) {
                self.collect_schemas(branch, value, all);
            }
        }
    }
}

fn has_type(types: &[String], value: &Value) -> bool {
    types.iter().any(|name| match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => {
            let is_whole = number.as_f64().is_some_and(|number| number.fract() == 0.0);
            name == "number" || (name == "integer" && is_whole)
        }
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    })
}

fn short_json(value: &Value) -> String {
    crate::pattern::short_json(value)
}

#[cfg(test)]
mod tests;
