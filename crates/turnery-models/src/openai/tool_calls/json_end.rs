//! Detects whether arguments received in fragments are a complete JSON text, reading each byte once.

use serde::de::IgnoredAny;

/// Length beyond which a text that is neither object nor array counts as incomplete. Unit: bytes.
const MAX_SCALAR_BYTES: usize = 64;

/// Tracks the brackets of a JSON text.
#[derive(Default)]
pub(super) struct JsonEndDetector {
    /// Number of open brackets.
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// True after the first bracket: the text is an object or an array.
    has_bracket: bool,
    /// Result of parsing the text once its brackets are closed.
    verdict: Option<bool>,
}

impl JsonEndDetector {
    pub(super) fn push(&mut self, fragment: &str) {
        if !fragment.trim().is_empty() {
            // Text after the end can never become valid JSON.
            self.verdict = self.verdict.map(|_| false);
        }
        for byte in fragment.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => {
                    self.depth = self.depth.saturating_add(1);
                    self.has_bracket = true;
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Returns true if `args` is a complete JSON text. Its fragments must all have been pushed.
    pub(super) fn is_complete(&mut self, args: &str) -> bool {
        if self.depth > 0 || self.in_string {
            return false;
        }
        if !self.has_bracket {
            return args.len() <= MAX_SCALAR_BYTES && is_json(args);
        }
        *self.verdict.get_or_insert_with(|| is_json(args))
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn completeness_matches_a_parser(
            pieces in prop::collection::vec(
                prop_oneof![
                    Just("{"), Just("}"), Just("[1]"), Just("\"a\""), Just(":"), Just(","),
                    Just("\"\\\""), Just(" "), Just("{\"a\":{}}"), Just("7"), Just("]"),
                ],
                0..12,
            ),
        ) {
            let mut text = String::new();
            let mut end = JsonEndDetector::default();
            for piece in pieces {
                text.push_str(piece);
                end.push(piece);
                prop_assert_eq!(end.is_complete(&text), is_json(&text), "{}", text);
            }
        }
    }
}
