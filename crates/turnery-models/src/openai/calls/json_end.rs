//! Finds out whether arguments that come in fragments are a whole JSON text, reading each byte once.

use crate::answer::Part;
use serde::de::IgnoredAny;

/// A longer text that is neither an object nor a list is taken to go on. Unit: bytes.
const LONGEST_SCALAR: usize = 64;

/// Follows the brackets of a JSON text.
#[derive(Default)]
pub(super) struct JsonEnd {
    /// Brackets that are open.
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// There was a bracket: the text is an object or a list.
    has_bracket: bool,
    /// What a parser says of the text, once its brackets are closed.
    verdict: Option<bool>,
}

impl JsonEnd {
    /// Takes in the next fragment.
    pub(super) fn read(&mut self, fragment: &str) {
        if !fragment.trim().is_empty() {
            // More after the end: the text is no JSON, and never will be.
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

    /// Whether the arguments, all of which were read, are whole by now.
    pub(super) fn is_whole(&mut self, part: Option<&mut Part>) -> bool {
        let args = match part {
            Some(Part::Call { args, .. }) => args,
            Some(Part::Text(_) | Part::Thinking { .. } | Part::Opaque(_)) | None => return false,
        };
        if self.depth > 0 || self.in_string {
            return false;
        }
        if !self.has_bracket {
            return args.len() <= LONGEST_SCALAR && is_json(args);
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

    fn call(args: &str) -> Part {
        Part::Call {
            id: "c".into(),
            name: "read".to_owned(),
            args: args.to_owned(),
        }
    }

    proptest! {
        #[test]
        fn wholeness_in_fragments_is_that_of_a_parser(
            pieces in prop::collection::vec(
                prop_oneof![
                    Just("{"), Just("}"), Just("[1]"), Just("\"a\""), Just(":"), Just(","),
                    Just("\"\\\""), Just(" "), Just("{\"a\":{}}"), Just("7"), Just("]"),
                ],
                0..12,
            ),
        ) {
            let mut text = String::new();
            let mut end = JsonEnd::default();
            for piece in pieces {
                text.push_str(piece);
                end.read(piece);
                prop_assert_eq!(end.is_whole(Some(&mut call(&text))), is_json(&text), "{}", text);
            }
        }
    }
}
