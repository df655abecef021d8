//! Parses JSON of any nesting depth. Levels below a limit are checked for syntax and replaced by `null`, so
//! that neither parsing nor dropping the value can overflow the stack.

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};
use std::fmt;

/// Levels kept of JSON that is too deep for serde_json, which accepts 127.
const MAX_LEVELS: usize = 120;

/// Parses JSON. If it is too deep for serde_json, levels below [`MAX_LEVELS`] become `null`.
pub(crate) fn parse_json(text: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(text).or_else(|error| parse_truncated(text).ok_or(error))
}

fn parse_truncated(text: &[u8]) -> Option<Value> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = DepthLimit(MAX_LEVELS).deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(value)
}

/// Number of levels that are still kept.
#[derive(Clone, Copy)]
struct DepthLimit(usize);

impl DepthLimit {
    fn next_level(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl<'de> DeserializeSeed<'de> for DepthLimit {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        if self.0 == 0 {
            // serde_json skips ignored values without recursion.
            return IgnoredAny::deserialize(reader).map(|IgnoredAny| Value::Null);
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for DepthLimit {
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
        while let Some(item) = from.next_element_seed(self.next_level())? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = from.next_key::<String>()? {
            members.insert(name, from.next_value_seed(self.next_level())?);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Depth that would overflow any stack.
    const MANY: usize = 2_000_000;

    #[test]
    fn json_of_any_depth_is_parsed() {
        let (open, close) = ("[".repeat(MANY), "]".repeat(MANY));
        let text = format!(
            "{{\"id\": -7, \"size\": 2.5, \"ok\": true, \"deep\": {open}{close}, \"text\": \"\\u00e9\", \"no\": null}}\n"
        );
        let mut message = parse_json(text.as_bytes()).unwrap();
        let mut deep = message["deep"].take();
        let rest =
            json!({"id": -7, "size": 2.5, "ok": true, "deep": null, "text": "é", "no": null});
        assert_eq!(message, rest);
        let mut levels = 1;
        while let Some(inner) = deep.get_mut(0) {
            deep = inner.take();
            levels += 1;
        }
        // The object is the first of the 120 levels.
        assert_eq!((levels, deep), (120, Value::Null));
    }

    #[test]
    fn json_of_usual_depth_is_kept_whole() {
        let text = format!("{}7{}", "[".repeat(127), "]".repeat(127));
        assert_eq!(parse_json(text.as_bytes()).unwrap().to_string(), text);
    }

    #[test]
    fn invalid_deep_json_is_an_error() {
        let open = "[".repeat(MANY);
        assert!(
            parse_json(open.as_bytes())
                .unwrap_err()
                .to_string()
                .contains("recursion")
        );
        let behind = format!("{open}{} 1", "]".repeat(MANY));
        assert!(parse_json(behind.as_bytes()).is_err());
        assert!(parse_json(b"{\"a\": 1").unwrap_err().is_eof());
    }
}
