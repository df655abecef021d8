//! Writes the character U+0000, which PostgreSQL does not store, as two others.

use std::borrow::Cow;

/// Private character that begins an escape.
const ESCAPE: char = '\u{E000}';

/// Returns a text that PostgreSQL can store. Different texts stay different.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    match text.contains(['\0', ESCAPE]) {
        false => Cow::Borrowed(text),
        true => {
            let escaped = text.replace(ESCAPE, "\u{E000}1");
            Cow::Owned(escaped.replace('\0', "\u{E000}0"))
        }
    }
}

/// Returns the text that was escaped.
pub(super) fn unescape(text: &str) -> Cow<'_, str> {
    match text.contains(ESCAPE) {
        false => Cow::Borrowed(text),
        true => {
            let plain = text.replace("\u{E000}0", "\0");
            Cow::Owned(plain.replace("\u{E000}1", "\u{E000}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn escaped_text_comes_back(text in "[a01\u{0}\u{E000}]*") {
            let escaped = escape(&text).into_owned();
            prop_assert!(!escaped.contains('\0'));
            prop_assert_eq!(unescape(&escaped).into_owned(), text.clone());
        }
    }
}
