//! Finds a final value in the text of a response, for models that answer with the value instead of calling `finish`.

use super::ValueSchema;
use serde_json::Value;
use turnery_engine::TextValue;

/// Returns the value of a text that is JSON, or whose only block of code is.
pub(super) fn find(text: &str, schema: &ValueSchema) -> TextValue {
    let parsed = parse(text).or_else(|| parse(only_block(text)?));
    match parsed {
        None => TextValue::Absent,
        Some(value) => match schema.check(&value) {
            Ok(()) => TextValue::Accepted(value),
            Err(reasons) => TextValue::Rejected(reasons),
        },
    }
}

fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// Returns the content of a text's block of code, if it has exactly one. JSON contains no line that begins with a
/// fence.
fn only_block(text: &str) -> Option<&str> {
    let mut at = 0;
    let mut fences = text.split_inclusive('\n').filter_map(|line| {
        let start = at;
        at += line.len();
        let is_fence = line.trim_start().starts_with("```");
        is_fence.then_some((start, at, line.trim()))
    });
    let ((_, begin, _), (end, _, closing)) = (fences.next()?, fences.next()?);
    let is_whole = fences.next().is_none() && closing.bytes().all(|byte| byte == b'`');
    is_whole.then(|| text.get(begin..end)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Prose around the only block is accepted; several blocks are ambiguous.
    // proves: LASH-120
    #[test]
    fn json_is_found_bare_or_in_only_block() {
        let schema = ValueSchema::new(json!({"required": ["a"], "type": "object"})).unwrap();
        let accepted = || TextValue::Accepted(json!({"a": "```"}));
        let block = "```json\n{\"a\":\n \"```\"}\n```";
        for (text, expected) in [
            (" {\"a\": \"```\"}\n", accepted()),
            (block, accepted()),
            (&format!("Here it is:\r\n{block}\r\nDone."), accepted()),
            (&block.replace("json", ""), accepted()),
            ("  ````\n  {\"a\": \"```\"}\n  ````", accepted()),
            (&format!("{block}\nor\n{block}"), TextValue::Absent),
            ("```json\n{\"a\": 1}", TextValue::Absent),
            ("```json\n{\"a\": 1}\n```rust", TextValue::Absent),
            ("It is {\"a\": 1}.", TextValue::Absent),
            ("", TextValue::Absent),
            (
                "{}",
                TextValue::Rejected("\"a\" is a required property".to_owned()),
            ),
        ] {
            assert_eq!(find(text, &schema), expected, "{text}");
        }
    }
}
