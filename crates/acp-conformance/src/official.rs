//! Official: the published JSON Schemas of both versions, and what a message does not keep of them.
//!
//! The schemas use few words of JSON Schema. They are walked here and not by a general validator, because a
//! person wants to read which member is wrong, and because the same walk finds the members that no schema knows.

use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::LazyLock,
};

/// A version of the protocol, with its schema.
pub(crate) struct Official {
    schema: Value,
    /// Definitions by side, method and what they are.
    names: HashMap<(Side, String, Part), String>,
}

/// Who handles a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Agent,
    Client,
    Both,
}

/// What of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Request,
    Response,
    Notification,
}

/// Something that is not as the schema says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Where: `/update/content`.
    pub(crate) path: String,
    /// What is wrong.
    pub(crate) why: String,
}

/// What a value has beside what every peer of its version knows.
#[derive(Default)]
struct Looked<'a> {
    unknown: Vec<String>,
    unstable: BTreeSet<&'a str>,
}

static V1: LazyLock<Official> =
    LazyLock::new(|| Official::read(include_str!(concat!(env!("OUT_DIR"), "/v1.json"))));
static V2: LazyLock<Official> =
    LazyLock::new(|| Official::read(include_str!(concat!(env!("OUT_DIR"), "/v2.json"))));

/// The schema of this version.
pub(crate) fn official(version: u64) -> &'static Official {
    match version {
        2 => &V2,
        _ => &V1,
    }
}

impl Official {
    fn read(text: &str) -> Self {
        // They come along; a test reads them.
        let schema: Value = serde_json::from_str(text).unwrap_or_default();
        let mut names = HashMap::new();
        let definitions = schema["$defs"].as_object();
        for (name, definition) in definitions.into_iter().flatten() {
            let side = match definition["x-side"].as_str() {
                Some("agent") => Side::Agent,
                Some("client") => Side::Client,
                Some("protocol") => Side::Both,
                _ => continue,
            };
            let parts = [
                ("Request", Part::Request),
                ("Response", Part::Response),
                ("Notification", Part::Notification),
            ];
            let part = parts.into_iter().find(|(ending, _)| name.ends_with(ending));
            if let (Some((_, part)), Some(method)) = (part, definition["x-method"].as_str()) {
                names.insert((side, method.to_owned(), part), name.clone());
            }
        }
        Self { schema, names }
    }

    /// The name of the definition of this part of a method.
    pub(crate) fn name(&self, side: Side, method: &str, part: Part) -> Option<&str> {
        let name = |side| self.names.get(&(side, method.to_owned(), part));
        name(side).or_else(|| name(Side::Both)).map(String::as_str)
    }

    /// What is wrong with a value of this definition.
    pub(crate) fn faults(&self, name: &str, value: &Value) -> Vec<Fault> {
        let mut faults = Vec::new();
        self.check(self.definition(name), value, "", &mut faults);
        faults
    }

    /// The members that the definition does not know, and `_meta` does not hold.
    pub(crate) fn unknown(&self, name: &str, value: &Value) -> Vec<String> {
        let mut looked = Looked::default();
        self.look(vec![self.definition(name)], value, "", &mut looked);
        looked.unknown.sort();
        looked.unknown
    }

    /// The unstable members and variants that a value of this definition uses: `Definition.member`.
    pub(crate) fn unstable(&self, name: &str, value: &Value) -> BTreeSet<&str> {
        let mut looked = Looked::default();
        self.look(vec![self.definition(name)], value, "", &mut looked);
        looked.unstable
    }

    /// The definition as a whole is unstable.
    pub(crate) fn is_unstable(&self, name: &str) -> bool {
        unstable(self.definition(name)).is_some()
    }

    /// The values of this member that tell the variants of a definition apart.
    pub(crate) fn variants(&self, name: &str, key: &str) -> Vec<&str> {
        branches(self.definition(name))
            .filter_map(|branch| branch["properties"][key]["const"].as_str())
            .collect()
    }

    /// Go along a path of members, parted by dots; what `_meta` holds is free.
    ///
    /// # Errors
    /// There is no such member: the path before it, with its dot, and the members that there are.
    pub(crate) fn walk<'a>(
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

    /// All members that a value of this schema may have.
    fn members<'a>(&'a self, schema: &'a Value, members: &mut BTreeMap<&'a str, &'a Value>) {
        let own = schema["properties"].as_object().into_iter().flatten();
        members.extend(own.map(|(key, member)| (key.as_str(), member)));
        let parts = items(&schema["allOf"]).iter().chain(branches(schema));
        for part in parts.chain(self.target(schema)) {
            self.members(part, members);
        }
    }

    fn definition(&self, name: &str) -> &Value {
        &self.schema["$defs"][name]
    }

    /// The schema that a schema refers to, if it does.
    fn target(&self, schema: &Value) -> Option<&Value> {
        let name = schema["$ref"].as_str()?.strip_prefix("#/$defs/")?;
        Some(self.definition(name))
    }

    fn holds(&self, schema: &Value, value: &Value) -> bool {
        let mut faults = Vec::new();
        self.check(schema, value, "", &mut faults);
        faults.is_empty()
    }

    fn check(&self, schema: &Value, value: &Value, path: &str, faults: &mut Vec<Fault>) {
        if let Some(target) = self.target(schema) {
            self.check(target, value, path, faults);
        }
        for part in items(&schema["allOf"]) {
            self.check(part, value, path, faults);
        }
        let mut wrong = |why: String| {
            let path = path.to_owned();
            faults.push(Fault { path, why });
        };
        if !is_of_type(&schema["type"], value) {
            wrong(format!("{} is no {}", short(value), types(&schema["type"])));
            return;
        }
        if let Some(wanted) = schema.get("const").filter(|wanted| *wanted != value) {
            wrong(format!("{} is not {wanted}", short(value)));
        }
        let is_beyond = |key: &str, beyond: fn(f64, f64) -> bool| {
            let bound = schema[key].as_f64().zip(value.as_f64());
            bound.is_some_and(|(bound, value)| beyond(value, bound))
        };
        if is_beyond("minimum", |value, bound| value < bound)
            || is_beyond("maximum", |value, bound| value > bound)
        {
            wrong(format!("{value} is out of bounds"));
        }
        let length = match value {
            Value::String(text) if schema.get("minLength").is_some() => {
                Some((text.chars().count(), "minLength"))
            }
            Value::Array(items) => Some((items.len(), "minItems")),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => None,
        };
        if let Some((length, key)) = length
            && let Some(least) = schema[key].as_u64()
            && u64::try_from(length).is_ok_and(|length| length < least)
        {
            wrong(format!("{} is too short", short(value)));
        }
        if let Some(not) = schema.get("not")
            && self.holds(not, value)
        {
            wrong(format!("{} is what it must not be", short(value)));
        }
        if let Some(object) = value.as_object() {
            for key in items(&schema["required"]).iter().filter_map(Value::as_str) {
                if !object.contains_key(key) {
                    wrong(format!("{key} is missing"));
                }
            }
        }
        self.check_members(schema, value, path, faults);
        for key in ["oneOf", "anyOf"] {
            self.check_variants(items(&schema[key]), value, path, faults);
        }
    }

    fn check_members(&self, schema: &Value, value: &Value, path: &str, faults: &mut Vec<Fault>) {
        if let Some(object) = value.as_object() {
            let others = schema.get("additionalProperties");
            for (key, value) in object {
                let member = schema["properties"].get(key).or(others);
                if let Some(member) = member.filter(|member| member.is_object()) {
                    self.check(member, value, &format!("{path}/{key}"), faults);
                }
            }
        }
        if let (Some(item), Some(values)) = (schema.get("items"), value.as_array()) {
            for (index, value) in values.iter().enumerate() {
                self.check(item, value, &format!("{path}/{index}"), faults);
            }
        }
    }

    fn check_variants(
        &self,
        variants: &[Value],
        value: &Value,
        path: &str,
        faults: &mut Vec<Fault>,
    ) {
        if variants.is_empty() || variants.iter().any(|variant| self.holds(variant, value)) {
            return;
        }
        // The one that is meant says best what is wrong.
        let key = variants.iter().find_map(tag);
        if let Some(key) = key
            && let Some(found) = value.get(key)
        {
            let meant = |variant: &&Value| variant["properties"][key].get("const") == Some(found);
            if let Some(variant) = variants.iter().find(meant) {
                return self.check(variant, value, path, faults);
            }
            if variants.iter().all(|variant| tag(variant) == Some(key)) {
                let path = format!("{path}/{key}");
                let why = format!("{} is none of the known ones", short(found));
                return faults.push(Fault { path, why });
            }
        }
        let constants = variants
            .iter()
            .all(|variant| variant.get("const").is_some());
        if constants {
            let path = path.to_owned();
            let why = format!("{} is none of the known ones", short(value));
            return faults.push(Fault { path, why });
        }
        // Who says something means something.
        let variants = variants.iter().filter(|variant| variant["type"] != "null");
        let tries = variants.map(|variant| {
            let mut faults = Vec::new();
            self.check(variant, value, path, &mut faults);
            faults
        });
        // Faults further inside mean that more of it was right.
        let nearest = tries.max_by_key(|faults| {
            let depth = faults
                .iter()
                .map(|fault| fault.path.len())
                .min()
                .unwrap_or(0);
            (depth, std::cmp::Reverse(faults.len()))
        });
        faults.extend(nearest.unwrap_or_default());
    }

    fn look<'a>(
        &'a self,
        schemas: Vec<&'a Value>,
        value: &Value,
        path: &str,
        looked: &mut Looked<'a>,
    ) {
        let mut all = Vec::new();
        for schema in schemas {
            self.gather(schema, value, &mut all);
        }
        let names = all.iter().filter_map(|schema| unstable(schema));
        looked
            .unstable
            .extend(names.filter(|name| name.contains('.')));
        match value {
            Value::Object(object) => {
                let mut known: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
                for schema in &all {
                    for (key, member) in schema["properties"].as_object().into_iter().flatten() {
                        known.entry(key).or_default().push(member);
                    }
                }
                let is_open = |schema: &&Value| {
                    let open = ["additionalProperties", "unevaluatedProperties"];
                    let is_open =
                        |key: &&str| schema.get(*key).is_some_and(|value| *value != false);
                    open.iter().any(is_open) || says_nothing(schema)
                };
                let is_open = all.iter().any(is_open) || known.is_empty();
                // Whoever does not know a variant still knows what names it.
                let tags = all
                    .iter()
                    .flat_map(|schema| branches(schema))
                    .filter_map(tag);
                let tags: Vec<&str> = tags.collect();
                for (key, value) in object
                    .iter()
                    .filter(|(key, _)| !tags.contains(&key.as_str()))
                {
                    let path = format!("{path}/{key}");
                    match known.remove(key.as_str()) {
                        Some(_) if value.is_null() => {}
                        Some(members) => self.look(members, value, &path, looked),
                        None if is_open => {}
                        None => looked.unknown.push(path),
                    }
                }
            }
            Value::Array(values) => {
                let item: Vec<&Value> = all
                    .iter()
                    .filter_map(|schema| schema.get("items"))
                    .collect();
                for (index, value) in values.iter().enumerate() {
                    self.look(item.clone(), value, &format!("{path}/{index}"), looked);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// All schemas that a schema is made of, for this value.
    fn gather<'a>(&'a self, schema: &'a Value, value: &Value, all: &mut Vec<&'a Value>) {
        all.push(schema);
        if let Some(target) = self.target(schema) {
            self.gather(target, value, all);
        }
        for part in items(&schema["allOf"]) {
            self.gather(part, value, all);
        }
        for branch in branches(schema) {
            if self.holds(branch, value) {
                self.gather(branch, value, all);
            }
        }
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn branches(schema: &Value) -> impl Iterator<Item = &Value> {
    items(&schema["oneOf"])
        .iter()
        .chain(items(&schema["anyOf"]))
}

/// Its name as an unstable part, if it is one.
fn unstable(schema: &Value) -> Option<&str> {
    schema["x-unstable"].as_str()
}

/// Whether anything at all fits it: such as what an error's data may be, beside the shapes that are named.
fn says_nothing(schema: &Value) -> bool {
    let mut keys = schema.as_object().into_iter().flatten();
    keys.all(|(key, _)| matches!(key.as_str(), "title" | "description" | "x-unstable"))
}

/// The member that tells this variant from the others.
fn tag(variant: &Value) -> Option<&str> {
    let mut members = variant["properties"].as_object()?.iter();
    let tag = members.find(|(_, member)| member.get("const").is_some());
    tag.map(|(key, _)| key.as_str())
}

fn is_of_type(types: &Value, value: &Value) -> bool {
    let is = |name: &str| match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => {
            let is_whole = number.as_f64().is_some_and(|number| number.fract() == 0.0);
            name == "number" || (name == "integer" && is_whole)
        }
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    };
    match types {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        _ => true,
    }
}

fn types(types: &Value) -> String {
    match types {
        Value::Array(names) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            names.join(" or ")
        }
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

fn short(value: &Value) -> String {
    crate::pattern::short(value)
}

#[cfg(test)]
mod tests;
