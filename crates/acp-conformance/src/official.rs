//! Official: the published JSON Schemas of both versions, and what a message does not keep of them.
//!
//! The schemas use few words of JSON Schema. They are walked here and not by a general validator, because a
//! person wants to read which member is wrong, and because the same walk finds the members that no schema knows.

mod schema;

use schema::Schema;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    ops::ControlFlow,
    sync::LazyLock,
};

/// A version of the protocol, with its schema.
pub(crate) struct Official {
    /// All definitions. The first one allows everything and stands for names that are unknown.
    definitions: Vec<Schema>,
    /// The index of each definition by its name.
    indices: HashMap<String, usize>,
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

/// Path to a part of a value, displayed as `/update/content/0`.
#[derive(Clone, Copy)]
enum Pointer<'a> {
    Top,
    Member(&'a Pointer<'a>, &'a str),
    Item(&'a Pointer<'a>, usize),
}

impl fmt::Display for Pointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top => Ok(()),
            Self::Member(parent, key) => write!(f, "{parent}/{key}"),
            Self::Item(parent, index) => write!(f, "{parent}/{index}"),
        }
    }
}

impl Pointer<'_> {
    /// Makes a fault of the part that it points to.
    fn fault(self, why: String) -> Fault {
        let path = self.to_string();
        Fault { path, why }
    }
}

/// Receiver of the faults that a walk over a value finds. `Break` ends the walk; then no text is rendered.
trait FaultSink {
    fn add(&mut self, make: impl FnOnce(&mut Vec<Fault>)) -> ControlFlow<()>;
}

impl FaultSink for Vec<Fault> {
    fn add(&mut self, make: impl FnOnce(&mut Self)) -> ControlFlow<()> {
        make(self);
        ControlFlow::Continue(())
    }
}

/// Ends the walk at the first fault.
struct StopAtFirst;

impl FaultSink for StopAtFirst {
    fn add(&mut self, _: impl FnOnce(&mut Vec<Fault>)) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

const SCHEMAS: [&str; 2] = [
    include_str!(concat!(env!("OUT_DIR"), "/v1.json")),
    include_str!(concat!(env!("OUT_DIR"), "/v2.json")),
];
static V1: LazyLock<Official> = LazyLock::new(|| Official::read(SCHEMAS[0]));
static V2: LazyLock<Official> = LazyLock::new(|| Official::read(SCHEMAS[1]));

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
        let definitions = || schema["$defs"].as_object().into_iter().flatten();
        let indices = definitions().zip(1..);
        let indices: HashMap<_, _> = indices.map(|((name, _), index)| (&**name, index)).collect();
        let read = definitions().map(|(_, definition)| Schema::read(definition, &indices));
        let mut names = HashMap::new();
        for (name, definition) in definitions() {
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
        Self {
            definitions: std::iter::once(Schema::default()).chain(read).collect(),
            indices: indices
                .iter()
                .map(|(name, index)| ((*name).to_owned(), *index))
                .collect(),
            names,
        }
    }

    /// The name of the definition of this part of a method.
    pub(crate) fn name(&self, side: Side, method: &str, part: Part) -> Option<&str> {
        let name = |side| self.names.get(&(side, method.to_owned(), part));
        name(side).or_else(|| name(Side::Both)).map(String::as_str)
    }

    /// What is wrong with a value of this definition.
    pub(crate) fn faults(&self, name: &str, value: &Value) -> Vec<Fault> {
        let mut faults = Vec::new();
        let _ = self.check(self.definition(name), value, Pointer::Top, &mut faults);
        faults
    }

    /// The members that the definition does not know, and `_meta` does not hold.
    pub(crate) fn unknown(&self, name: &str, value: &Value) -> Vec<String> {
        let mut looked = Looked::default();
        self.look(&[self.definition(name)], value, Pointer::Top, &mut looked);
        looked.unknown.sort();
        looked.unknown
    }

    /// The unstable members and variants that a value of this definition uses: `Definition.member`.
    pub(crate) fn unstable(&self, name: &str, value: &Value) -> BTreeSet<&str> {
        let mut looked = Looked::default();
        self.look(&[self.definition(name)], value, Pointer::Top, &mut looked);
        looked.unstable
    }

    /// The definition as a whole is unstable.
    pub(crate) fn is_unstable(&self, name: &str) -> bool {
        self.definition(name).unstable.is_some()
    }

    /// The values of this member that tell the variants of a definition apart.
    pub(crate) fn variants(&self, name: &str, key: &str) -> Vec<&str> {
        let branches = self.definition(name).branches();
        branches
            .filter_map(|branch| branch.constant_of(key)?.as_str())
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
    fn members<'a>(&'a self, schema: &'a Schema, members: &mut BTreeMap<&'a str, &'a Schema>) {
        let own = schema.properties.iter();
        members.extend(own.map(|(key, member)| (key.as_str(), member)));
        let parts = schema.all_of.iter().chain(schema.branches());
        for part in parts.chain(self.target(schema)) {
            self.members(part, members);
        }
    }

    fn definition(&self, name: &str) -> &Schema {
        &self.definitions[self.indices.get(name).copied().unwrap_or_default()]
    }

    /// The schema that a schema refers to, if it does.
    fn target(&self, schema: &Schema) -> Option<&Schema> {
        Some(&self.definitions[schema.target?])
    }

    fn holds(&self, schema: &Schema, value: &Value) -> bool {
        schema.fits_tag(value)
            && self
                .check(schema, value, Pointer::Top, &mut StopAtFirst)
                .is_continue()
    }

    fn check(
        &self,
        schema: &Schema,
        value: &Value,
        at: Pointer<'_>,
        faults: &mut impl FaultSink,
    ) -> ControlFlow<()> {
        if let Some(target) = self.target(schema) {
            self.check(target, value, at, faults)?;
        }
        for part in &schema.all_of {
            self.check(part, value, at, faults)?;
        }
        let mut wrong = |why: &dyn Fn() -> String| faults.add(|list| list.push(at.fault(why())));
        if let Some(types) = &schema.types
            && !is_of_type(types, value)
        {
            return wrong(&|| format!("{} is no {}", short(value), types.join(" or ")));
        }
        if let Some(wanted) = &schema.constant
            && wanted != value
        {
            wrong(&|| format!("{} is not {wanted}", short(value)))?;
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
            wrong(&|| format!("{} is too short", short(value)))?;
        }
        if let Some(not) = &schema.not
            && self.holds(not, value)
        {
            wrong(&|| format!("{} is what it must not be", short(value)))?;
        }
        if let Some(object) = value.as_object() {
            for key in &schema.required {
                if !object.contains_key(key) {
                    wrong(&|| format!("{key} is missing"))?;
                }
            }
        }
        self.check_members(schema, value, at, faults)?;
        for variants in [&schema.one_of, &schema.any_of] {
            if !variants.is_empty() && !variants.iter().any(|variant| self.holds(variant, value)) {
                faults.add(|list| self.add_variant_faults(variants, value, at, list))?;
            }
        }
        ControlFlow::Continue(())
    }

    fn check_members(
        &self,
        schema: &Schema,
        value: &Value,
        at: Pointer<'_>,
        faults: &mut impl FaultSink,
    ) -> ControlFlow<()> {
        if let Some(object) = value.as_object() {
            for (key, value) in object {
                let member = schema.properties.get(key);
                if let Some(member) = member.or(schema.others.as_deref()) {
                    self.check(member, value, Pointer::Member(&at, key), faults)?;
                }
            }
        }
        if let (Some(item), Some(values)) = (&schema.items, value.as_array()) {
            for (index, value) in values.iter().enumerate() {
                self.check(item, value, Pointer::Item(&at, index), faults)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Adds the faults of a value that fits none of the variants.
    fn add_variant_faults(
        &self,
        variants: &[Schema],
        value: &Value,
        at: Pointer<'_>,
        faults: &mut Vec<Fault>,
    ) {
        let tried = |variant| {
            let mut faults = Vec::new();
            let _ = self.check(variant, value, at, &mut faults);
            faults
        };
        // The one that is meant says best what is wrong.
        let key = variants.iter().find_map(|variant| variant.tag.as_deref());
        if let Some(key) = key
            && let Some(found) = value.get(key)
        {
            let meant = |variant: &&Schema| variant.constant_of(key) == Some(found);
            if let Some(variant) = variants.iter().find(meant) {
                return faults.extend(tried(variant));
            }
            if variants
                .iter()
                .all(|variant| variant.tag.as_deref() == Some(key))
            {
                let why = format!("{} is none of the known ones", short(found));
                return faults.push(Pointer::Member(&at, key).fault(why));
            }
        }
        if variants.iter().all(|variant| variant.constant.is_some()) {
            let why = format!("{} is none of the known ones", short(value));
            return faults.push(at.fault(why));
        }
        // Who says something means something.
        let is_null = |variant: &Schema| {
            variant
                .types
                .as_ref()
                .is_some_and(|types| *types == ["null"])
        };
        let variants = variants.iter().filter(|variant| !is_null(variant));
        // Faults further inside mean that more of it was right.
        let nearest = variants.map(tried).max_by_key(|faults| {
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
        schemas: &[&'a Schema],
        value: &Value,
        at: Pointer<'_>,
        looked: &mut Looked<'a>,
    ) {
        let mut all = Vec::new();
        for schema in schemas {
            self.gather(schema, value, &mut all);
        }
        let names = all.iter().filter_map(|schema| schema.unstable.as_deref());
        looked
            .unstable
            .extend(names.filter(|name| name.contains('.')));
        match value {
            Value::Object(object) => {
                let is_open = all.iter().any(|schema| schema.is_open)
                    || all.iter().all(|schema| schema.properties.is_empty());
                // Whoever does not know a variant still knows what names it.
                let is_tag = |key: &str| all.iter().any(|schema| schema.tags.contains(key));
                for (key, value) in object.iter().filter(|(key, _)| !is_tag(key)) {
                    let members = all.iter().filter_map(|schema| schema.properties.get(key));
                    let members: Vec<&Schema> = members.collect();
                    let at = Pointer::Member(&at, key);
                    if !members.is_empty() {
                        if !value.is_null() {
                            self.look(&members, value, at, looked);
                        }
                    } else if !is_open {
                        looked.unknown.push(at.to_string());
                    }
                }
            }
            Value::Array(values) => {
                let item = all.iter().filter_map(|schema| schema.items.as_deref());
                let item: Vec<&Schema> = item.collect();
                for (index, value) in values.iter().enumerate() {
                    self.look(&item, value, Pointer::Item(&at, index), looked);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// All schemas that a schema is made of, for this value.
    fn gather<'a>(&'a self, schema: &'a Schema, value: &Value, all: &mut Vec<&'a Schema>) {
        all.push(schema);
        if let Some(target) = self.target(schema) {
            self.gather(target, value, all);
        }
        for part in &schema.all_of {
            self.gather(part, value, all);
        }
        for branch in schema.branches() {
            if self.holds(branch, value) {
                self.gather(branch, value, all);
            }
        }
    }
}

fn is_of_type(types: &[String], value: &Value) -> bool {
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

fn short(value: &Value) -> String {
    crate::pattern::short(value)
}

#[cfg(test)]
mod tests;
