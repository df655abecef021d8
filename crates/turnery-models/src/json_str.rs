//! Deserializes a JSON string, borrowed from its event unless it contains escapes.

use memchr::memchr;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::value::RawValue;
use std::{borrow::Cow, ops::Deref};

/// Text of a JSON string. Usable inside `Option`, where serde does not borrow a plain `Cow`.
///
/// Some servers cut a stream between the two halves of a character outside the Basic Multilingual Plane, so a fragment
/// may begin or end with half of a surrogate pair: [`FragmentJoiner`] puts them together.
#[derive(Debug)]
pub(crate) struct JsonStr<'a> {
    /// Text without the halves at its ends. Halves elsewhere are replaced with U+FFFD.
    text: Cow<'a, str>,
    /// Low surrogate before the text.
    low: Option<u16>,
    /// High surrogate after the text.
    high: Option<u16>,
}

impl<'a> JsonStr<'a> {
    /// Parses `raw`, the JSON of any value; `None` if it is no string.
    pub(crate) fn parse(raw: &'a str) -> Option<Self> {
        let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
        let text = match memchr(b'\\', inner.as_bytes()) {
            None => Cow::Borrowed(inner),
            Some(_) => match serde_json::from_str(raw) {
                Ok(text) => Cow::Owned(text),
                // The string is well formed except for unpaired surrogates.
                Err(_) => return Self::from_units(&utf16_units(inner)?),
            },
        };
        Some(Self {
            text,
            low: None,
            high: None,
        })
    }

    fn from_units(units: &[u16]) -> Option<Self> {
        let (low, rest) = match units {
            [low @ 0xDC00..=0xDFFF, rest @ ..] => (Some(*low), rest),
            rest => (None, rest),
        };
        let (rest, high) = match rest {
            [rest @ .., high @ 0xD800..=0xDBFF] => (rest, Some(*high)),
            rest => (rest, None),
        };
        Some(Self {
            text: Cow::Owned(String::from_utf16_lossy(rest)),
            low,
            high,
        })
    }

    /// Returns true if there is neither text nor half a character.
    pub(crate) fn is_unset(&self) -> bool {
        self.text.is_empty() && self.low.is_none() && self.high.is_none()
    }

    pub(crate) fn into_cow(self) -> Cow<'a, str> {
        self.text
    }

    pub(crate) fn into_owned(self) -> String {
        self.text.into_owned()
    }
}

impl Deref for JsonStr<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.text
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonStr<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(from)?;
        Self::parse(raw.get()).ok_or_else(|| D::Error::custom("a string is expected"))
    }
}

/// Decodes the inside of a JSON string to UTF-16, where unpaired surrogates are representable.
fn utf16_units(inner: &str) -> Option<Vec<u16>> {
    let mut units = Vec::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' => match chars.next()? {
                'u' => {
                    let (hex, rest) = chars.as_str().split_at_checked(4)?;
                    units.push(u16::from_str_radix(hex, 16).ok()?);
                    chars = rest.chars();
                    continue;
                }
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                other => other,
            },
            c => c,
        };
        units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
    }
    Some(units)
}

/// Joins surrogate pairs that a server split between the fragments of one text.
#[derive(Debug, Default)]
pub(crate) struct FragmentJoiner {
    /// High surrogate at the end of the last fragment.
    high: Option<u16>,
}

impl FragmentJoiner {
    /// Returns the text that `fragment` adds. A half without its other half becomes U+FFFD.
    pub(crate) fn join<'a>(&mut self, fragment: &'a JsonStr<'_>) -> Cow<'a, str> {
        if fragment.is_unset() {
            return Cow::Borrowed("");
        }
        let JsonStr { text, low, high } = fragment;
        let before = std::mem::replace(&mut self.high, *high);
        let halves: Vec<u16> = before.into_iter().chain(*low).collect();
        match halves.is_empty() {
            true => Cow::Borrowed(text),
            false => Cow::Owned(String::from_utf16_lossy(&halves) + text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_borrowed_even_in_an_option() {
        let plain: Option<JsonStr<'_>> = serde_json::from_str(r#""abc""#).unwrap();
        assert!(matches!(plain.unwrap().text, Cow::Borrowed("abc")));
        let escaped: Option<JsonStr<'_>> = serde_json::from_str(r#""a\n""#).unwrap();
        assert_eq!(&*escaped.unwrap(), "a\n");
        let none: Option<JsonStr<'_>> = serde_json::from_str("null").unwrap();
        assert!(none.is_none());
        assert!(serde_json::from_str::<JsonStr<'_>>("1").is_err());
    }

    /// Quirk 51.
    #[test]
    fn split_surrogate_pairs_are_joined() {
        let joined = |fragments: &[&str]| -> String {
            let mut joiner = FragmentJoiner::default();
            let mut text = String::new();
            for raw in fragments {
                text += &joiner.join(&serde_json::from_str(raw).unwrap());
            }
            text
        };
        assert_eq!(joined(&[r#""a\ud83d""#, r#""\ude00b""#]), "a😀b");
        assert_eq!(joined(&[r#""\ud83d""#, r#""""#, r#""\ude00""#]), "😀");
        assert_eq!(joined(&[r#""\ud83d\ude00""#]), "😀");
        assert_eq!(
            joined(&[r#""\ud83d""#, r#""\ude00\ud83d""#, r#""\ude01""#]),
            "😀😁"
        );
        // Halves that have lost their other half.
        assert_eq!(joined(&[r#""a\ud83d""#, r#""b""#]), "a\u{fffd}b");
        assert_eq!(joined(&[r#""\ude00b""#]), "\u{fffd}b");
        assert_eq!(
            joined(&[r#""é\n\"\\\/\b\f\r\t\u0041\ud83dz""#]),
            "é\n\"\\/\u{8}\u{c}\r\tA\u{fffd}z"
        );
    }
}
