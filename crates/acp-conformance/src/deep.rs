//! Deep: JSON as deep as an agent likes. Its depths, that no rule is about, are checked and left out: so no stack
//! is too small for it, neither when it is read nor when it is dropped.

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};
use std::fmt;

/// So many levels are kept of what is too deep for the usual reader, which takes 127.
const KEPT: usize = 120;

/// Read JSON. What is deeper than most readers bear has `null` for its depths.
pub(crate) fn read(text: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(text).or_else(|error| cut(text).ok_or(error))
}

fn cut(text: &[u8]) -> Option<Value> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Levels(KEPT).deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(value)
}

/// So many levels are kept.
#[derive(Clone, Copy)]
struct Levels(usize);

impl Levels {
    fn below(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl<'de> DeserializeSeed<'de> for Levels {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        if self.0 == 0 {
            // This is read without recursion.
            return IgnoredAny::deserialize(reader).map(|IgnoredAny| Value::Null);
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Levels {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, it: bool) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_u64<E>(self, it: u64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_i64<E>(self, it: i64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_f64<E>(self, it: f64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_str<E>(self, it: &str) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element_seed(self.below())? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = from.next_key::<String>()? {
            members.insert(name, from.next_value_seed(self.below())?);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// So many would overflow any stack.
    const MANY: usize = 2_000_000;

    #[test]
    fn a_message_of_any_depth_is_read() {
        let (open, close) = ("[".repeat(MANY), "]".repeat(MANY));
        let text = format!(
            "{{\"id\": -7, \"size\": 2.5, \"ok\": true, \"deep\": {open}{close}, \"text\": \"\\u00e9\", \"no\": null}}\n"
        );
        let mut message = read(text.as_bytes()).unwrap();
        let mut deep = message["deep"].take();
        let rest =
            json!({"id": -7, "size": 2.5, "ok": true, "deep": null, "text": "é", "no": null});
        assert_eq!(message, rest);
        let mut levels = 1;
        while let Some(inner) = deep.get_mut(0) {
            deep = inner.take();
            levels += 1;
        }
        // The object is the first of the 120.
        assert_eq!((levels, deep), (120, Value::Null));
    }

    #[test]
    fn what_the_usual_reader_bears_is_kept_whole() {
        let text = format!("{}7{}", "[".repeat(127), "]".repeat(127));
        assert_eq!(read(text.as_bytes()).unwrap().to_string(), text);
    }

    #[test]
    fn what_is_no_json_is_none_however_deep() {
        let open = "[".repeat(MANY);
        assert!(
            read(open.as_bytes())
                .unwrap_err()
                .to_string()
                .contains("recursion")
        );
        let behind = format!("{open}{} 1", "]".repeat(MANY));
        assert!(read(behind.as_bytes()).is_err());
        assert!(read(b"{\"a\": 1").unwrap_err().is_eof());
    }
}
