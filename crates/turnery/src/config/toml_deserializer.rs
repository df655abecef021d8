//! Lets serde read a parsed TOML file. Errors are in a user's words, and hold the path of the wrong value.

use super::suggestion::alternatives;
use serde::{
    Deserializer,
    de::{
        DeserializeSeed, Error as _, Expected, MapAccess, SeqAccess, Unexpected, Visitor,
        value::StrDeserializer,
    },
    forward_to_deserialize_any,
};
use std::{collections::HashSet, fmt};
use toml::{Spanned, de::DeValue};

/// Error of one value.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(super) struct ReadError {
    /// Path to the value; empty until [`at`](Self::at) sets it.
    pub(super) path: Vec<String>,
    /// True if the key has no meaning; `text` then names the valid ones.
    pub(super) is_unknown_key: bool,
    pub(super) text: String,
}

impl ReadError {
    fn at(mut self, path: &[String]) -> Self {
        if self.path.is_empty() {
            self.path = path.to_vec();
        }
        self
    }
}

impl serde::de::Error for ReadError {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self {
            path: Vec::new(),
            is_unknown_key: false,
            text: text.to_string(),
        }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match found {
            Unexpected::Str(_) => "string",
            Unexpected::Signed(_) | Unexpected::Unsigned(_) => "integer",
            Unexpected::Float(_) => "float",
            Unexpected::Bool(_) => "boolean",
            Unexpected::Seq => "array",
            Unexpected::Map => "table",
            Unexpected::Other(name) => name,
            _ => "something else",
        };
        let expected = expected.to_string();
        let (noun, _) = describe(&expected);
        Self::custom(format!("expected {noun}, found {found}"))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        let (noun, range) = describe(&expected);
        let noun = noun.trim_start_matches("a ");
        Self::custom(match found {
            Unexpected::Unsigned(number @ 1..) => format!("{number} is too many"),
            Unexpected::Unsigned(number) => format!("{number} is no {noun}{range}"),
            Unexpected::Signed(number) => format!("{number} is no {noun}{range}"),
            _ => format!("is no {noun}{range}"),
        })
    }

    fn unknown_field(key: &str, expected: &'static [&'static str]) -> Self {
        Self {
            is_unknown_key: true,
            ..Self::custom(alternatives(key, expected))
        }
    }
}

/// Translates serde's name of an expected type into a noun phrase for error messages and a suffix with the
/// valid range, which may be empty.
fn describe(expected: &str) -> (&str, &str) {
    match expected {
        "a string" => ("a text in quotes", ""),
        "a boolean" => ("true or false", ""),
        "a sequence" => ("a list", ""),
        "a map" => ("a table", ""),
        "u8" | "u32" | "u64" | "usize" => ("a whole number", " from 0 on"),
        "i64" => ("a whole number", ""),
        "f64" => ("a number", ""),
        other if other.starts_with("a nonzero ") => ("a whole number", " from 1 on"),
        other if other.starts_with("struct ") => ("a table", ""),
        other => (other, ""),
    }
}

/// A value of the file, as serde reads it.
pub(super) struct Node<'n> {
    value: &'n DeValue<'n>,
    path: Vec<String>,
    wrong: &'n HashSet<Vec<String>>,
}

impl<'n> Node<'n> {
    /// Returns the whole file. Values at the paths in `wrong` are left out.
    pub(super) fn root(value: &'n DeValue<'n>, wrong: &'n HashSet<Vec<String>>) -> Self {
        Self {
            value,
            path: Vec::new(),
            wrong,
        }
    }

    /// Wraps a child value, with `step` (its key or index) added to the path. Returns `None` if that path is
    /// in `wrong`.
    fn child(&self, step: String, value: &'n Spanned<DeValue<'n>>) -> Option<Self> {
        let path: Vec<String> = self.path.iter().cloned().chain([step]).collect();
        (!self.wrong.contains(&path)).then(|| Self {
            value: value.get_ref(),
            path,
            wrong: self.wrong,
        })
    }

    fn read<T: DeserializeSeed<'n>>(self, seed: T) -> Result<T::Value, ReadError> {
        let path = self.path.clone();
        seed.deserialize(self).map_err(|error| error.at(&path))
    }
}

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.value {
            DeValue::String(text) => visitor.visit_str(text),
            DeValue::Boolean(value) => visitor.visit_bool(*value),
            DeValue::Integer(number) => {
                let (text, radix) = (number.as_str(), number.radix());
                match u64::from_str_radix(text, radix) {
                    Ok(number) => visitor.visit_u64(number),
                    Err(_) => match i64::from_str_radix(text, radix) {
                        Ok(number) => visitor.visit_i64(number),
                        Err(_) => Err(ReadError::custom(format!("{text} is too many"))),
                    },
                }
            }
            DeValue::Float(number) => match number.as_str().parse() {
                Ok(number) => visitor.visit_f64(number),
                Err(_) => Err(ReadError::custom("is no number")),
            },
            DeValue::Datetime(_) => Err(ReadError::invalid_type(
                Unexpected::Other("datetime"),
                &visitor,
            )),
            DeValue::Array(items) => {
                let items = items.iter().enumerate();
                let items = items.filter_map(|(i, item)| self.child(i.to_string(), item));
                visitor.visit_seq(Nodes(items))
            }
            DeValue::Table(table) => {
                let entries = table.iter().filter_map(|(key, value)| {
                    let key = key.get_ref().as_ref();
                    Some((key, self.child(str::to_owned(key), value)?))
                });
                visitor.visit_map(Entries {
                    entries,
                    value: None,
                })
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    /// Refuses lists, which derived types would read field by field.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.value {
            DeValue::Array(_) => Err(ReadError::invalid_type(Unexpected::Seq, &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map newtype_struct enum identifier ignored_any
    }
}

/// Items of a list.
struct Nodes<I>(I);

impl<'n, I: Iterator<Item = Node<'n>>> SeqAccess<'n> for Nodes<I> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'n>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        self.0.next().map(|item| item.read(seed)).transpose()
    }
}

/// Keys and values of a table.
struct Entries<'n, I> {
    entries: I,
    value: Option<Node<'n>>,
}

impl<'n, I: Iterator<Item = (&'n str, Node<'n>)>> MapAccess<'n> for Entries<'n, I> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'n>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        let Some((key, value)) = self.entries.next() else {
            return Ok(None);
        };
        let key = seed.deserialize(StrDeserializer::new(key));
        let key = key.map_err(|error: ReadError| error.at(&value.path))?;
        self.value = Some(value);
        Ok(Some(key))
    }

    fn next_value_seed<V: DeserializeSeed<'n>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        match self.value.take() {
            Some(value) => value.read(seed),
            None => Err(ReadError::custom("has no value")),
        }
    }
}
