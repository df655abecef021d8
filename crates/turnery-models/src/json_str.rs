//! Deserializes a JSON string, borrowed from its event unless it contains escapes.

use serde::Deserialize;
use std::{borrow::Cow, ops::Deref};

/// Wrapper needed inside `Option`, where serde does not borrow a plain `Cow`.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct JsonStr<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> JsonStr<'a> {
    pub(crate) fn into_cow(self) -> Cow<'a, str> {
        self.0
    }

    pub(crate) fn into_owned(self) -> String {
        self.0.into_owned()
    }
}

impl Deref for JsonStr<'_> {
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
        let plain: Option<JsonStr<'_>> = serde_json::from_str(r#""abc""#).unwrap();
        assert!(matches!(plain, Some(JsonStr(Cow::Borrowed("abc")))));
        let escaped: Option<JsonStr<'_>> = serde_json::from_str(r#""a\n""#).unwrap();
        assert!(matches!(escaped, Some(JsonStr(Cow::Owned(_)))));
    }
}
