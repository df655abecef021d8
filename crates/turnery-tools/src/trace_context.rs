//! Trace context of a prompt (W3C Trace Context). Passed on to servers unchanged (EXT-6) and not interpreted.

use serde_json::{Map, Value};
use std::sync::Arc;

/// Keys of a message's `_meta` that are passed on.
const META_KEYS: [&str; 3] = ["traceparent", "tracestate", "baggage"];
/// A longer value is dropped. Unit: bytes; the minimum that W3C requires to be propagated.
const MAX_VALUE_BYTES: usize = 8192;

/// `traceparent`, `tracestate` and `baggage` of a prompt. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceContext(Option<Arc<Map<String, Value>>>);

impl TraceContext {
    /// Reads the trace context from the root of a message's `_meta`.
    #[must_use]
    pub fn from_meta(meta: &Map<String, Value>) -> Self {
        let found: Map<String, Value> = META_KEYS
            .iter()
            .filter_map(|key| Some((key, meta.get(*key)?.as_str()?)))
            .filter(|(_, text)| text.len() <= MAX_VALUE_BYTES)
            .map(|(key, text)| ((*key).to_owned(), text.into()))
            .collect();
        Self((!found.is_empty()).then(|| Arc::new(found)))
    }

    /// Returns the keys and values for the `_meta` of another message.
    pub fn entries(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter().flat_map(|found| found.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_trace_keys_with_short_text_are_kept() {
        let meta = json!({
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "tracestate": 7,
            "baggage": "x".repeat(8193),
            "other": "stays",
        });
        let context = TraceContext::from_meta(meta.as_object().unwrap());
        let entries: Vec<_> = context.entries().collect();
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(entries, [(&"traceparent".to_owned(), &json!(trace))]);
        assert_eq!(
            TraceContext::from_meta(&Map::new()),
            TraceContext::default()
        );
    }
}
