//! Reads values of variables and headers, which may be secrets or name a variable of the environment.

use super::{environment::EnvLookup, reader::Document};
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use std::{collections::BTreeMap, fmt};

/// How a value is written.
const VALUE_FORM: &str = "a text in quotes, or { env = \"VARIABLE\" }";

/// Value of a variable or header.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum ValueSource {
    /// The value itself.
    Plain(#[schemars(with = "String")] SecretText),
    /// A variable of the environment, so that no secret is in the file.
    Variable(Variable),
}

/// A variable of the environment.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variable {
    /// Name of the variable.
    env: Option<String>,
    /// Text before the value, for example `Bearer `.
    #[serde(default)]
    prefix: String,
}

/// Text that may be a secret; redacted in `Debug` output.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(transparent)]
pub(crate) struct SecretText(String);

impl SecretText {
    /// Returns the text, which may be a secret.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

impl<'de> Deserialize<'de> for ValueSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueSourceVisitor)
    }
}

struct ValueSourceVisitor;

impl<'de> Visitor<'de> for ValueSourceVisitor {
    type Value = ValueSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(VALUE_FORM)
    }

    fn visit_str<E>(self, text: &str) -> Result<ValueSource, E> {
        Ok(ValueSource::Plain(SecretText(text.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<ValueSource, A::Error> {
        Variable::deserialize(MapAccessDeserializer::new(table)).map(ValueSource::Variable)
    }
}

/// Reports values at `path` that name no variable.
pub(super) fn check_values(
    path: &[&str],
    values: &BTreeMap<String, ValueSource>,
    document: &mut Document<'_>,
) {
    for (name, given) in values {
        let at = [path, &[name.as_str()]].concat();
        if matches!(given, ValueSource::Variable(Variable { env: None, .. }))
            && !document.is_written(&[at.as_slice(), &["env"]].concat())
        {
            document.report(&at, &format!("env is missing: write {VALUE_FORM}"));
        }
    }
}

/// A value cannot be read, because its variable is not set.
#[derive(Debug, PartialEq)]
pub(super) struct UnsetVariable {
    /// Name of the value.
    pub(super) value: String,
    pub(super) variable: String,
}

impl fmt::Display for UnsetVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, variable } = self;
        write!(
            f,
            "{value} needs the environment variable {variable}, which is not set"
        )
    }
}

/// Returns the values by name.
pub(super) fn resolve_values(
    values: &BTreeMap<String, ValueSource>,
    lookup: EnvLookup<'_>,
) -> Result<Vec<(String, String)>, UnsetVariable> {
    let value = |value: &String, given: &ValueSource| match given {
        ValueSource::Plain(SecretText(text)) => Ok(text.clone()),
        ValueSource::Variable(Variable { env, prefix }) => {
            let name = env.as_deref().unwrap_or_default();
            match lookup(name) {
                Some(text) => Ok(format!("{prefix}{text}")),
                None => Err(UnsetVariable {
                    value: value.clone(),
                    variable: name.to_owned(),
                }),
            }
        }
    };
    let pairs = values.iter();
    pairs
        .map(|(name, given)| Ok((name.clone(), value(name, given)?)))
        .collect()
}
