//! Text: a JSON string that is borrowed from its event unless it holds escapes.

use serde::Deserialize;
use std::{borrow::Cow, ops::Deref};

/// Serde borrows a `Cow` only where it stands alone; inside an `Option` it needs this around it.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Text<'a> {
    pub(crate) fn into_cow(self) -> Cow<'a, str> {
        self.0
    }

    pub(crate) fn into_owned(self) -> String {
        self.0.into_owned()
    }
}

impl Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_borrowed_even_in_an_option() {
        let plain: Option<Text<'_>> = serde_json::from_str(r#""abc""#).unwrap();
        assert!(matches!(plain, Some(Text(Cow::Borrowed("abc")))));
        let escaped: Option<Text<'_>> = serde_json::from_str(r#""a\n""#).unwrap();
        assert!(matches!(escaped, Some(Text(Cow::Owned(_)))));
    }
}
