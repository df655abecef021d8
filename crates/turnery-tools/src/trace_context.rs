//! Trace context: where a prompt stands in the traces of whoever sent it (W3C Trace Context). Passed on
//! to servers as it came (EXT-6); nothing here reads it.

use serde_json::{Map, Value};
use std::sync::Arc;

/// The keys of a message's `_meta` that are passed on.
const KEYS: [&str; 3] = ["traceparent", "tracestate", "baggage"];
/// A longer value is not passed on. Unit: bytes; what the W3C wants to be carried at least.
const LONGEST: usize = 8192;

/// `traceparent`, `tracestate` and `baggage` of a prompt. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceContext(Option<Arc<Map<String, Value>>>);

impl TraceContext {
    /// What of it stands at the root of a message's `_meta`.
    #[must_use]
    pub fn of_meta(meta: &Map<String, Value>) -> Self {
        let found: Map<String, Value> = KEYS
            .iter()
            .filter_map(|key| Some((key, meta.get(*key)?.as_str()?)))
            .filter(|(_, text)| text.len() <= LONGEST)
            .map(|(key, text)| ((*key).to_owned(), text.into()))
            .collect();
        Self((!found.is_empty()).then(|| Arc::new(found)))
    }

    /// Its keys and values, for the `_meta` of another message.
    pub fn entries(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter().flat_map(|found| found.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_three_keys_are_passed_on_and_only_as_text() {
        let meta = json!({
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "tracestate": 7,
            "baggage": "x".repeat(8193),
            "other": "stays",
        });
        let context = TraceContext::of_meta(meta.as_object().unwrap());
        let entries: Vec<_> = context.entries().collect();
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(entries, [(&"traceparent".to_owned(), &json!(trace))]);
        assert_eq!(TraceContext::of_meta(&Map::new()), TraceContext::default());
    }
}
