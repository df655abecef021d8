//! Parses token counts as servers write them: integers, floats, strings, or garbage.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Largest accepted count; doubles cannot represent all larger integers.
const MAX_COUNT: u64 = 1 << 53;

/// Token count of a usage report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenCount {
    Known(u64),
    /// Negative, fractional, huge, or not a number. Makes the usage unknown, not zero.
    Unreadable,
}

impl TokenCount {
    fn of(text: &str) -> Self {
        let text = text.trim_matches('"').trim();
        let whole = text.parse::<u64>().ok().or_else(|| {
            let float = text.parse::<f64>().ok()?;
            let is_whole = float >= 0.0 && float.fract() == 0.0;
            is_whole.then(|| format!("{:.0}", float.abs()).parse().ok())?
        });
        match whole.filter(|count| *count <= MAX_COUNT) {
            Some(count) => Self::Known(count),
            None => Self::Unreadable,
        }
    }

    /// Returns the count of an optional field; a missing field counts as zero.
    ///
    /// # Errors
    ///
    /// The field exists but is unreadable.
    pub(crate) fn value_or_zero(field: Option<Self>) -> Result<u64, TokenCountError> {
        match field {
            Some(Self::Known(count)) => Ok(count),
            Some(Self::Unreadable) => Err(TokenCountError),
            None => Ok(0),
        }
    }
}

/// Unreadable count in a usage report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenCountError;

impl<'de> Deserialize<'de> for TokenCount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(from).map(|raw| Self::of(raw.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_parsed_in_every_form_or_rejected() {
        for (text, expected) in [
            ("12", Some(12)),
            ("12.0", Some(12)),
            ("1.2e1", Some(12)),
            ("\"12\"", Some(12)),
            ("-0.0", Some(0)),
            ("9007199254740992", Some(1 << 53)),
            ("9007199254740993", None),
            ("-1", None),
            ("-0.5", None),
            ("12.5", None),
            ("1e300", None),
            ("99999999999999999999999", None),
            ("\"\"", None),
            ("\"many\"", None),
            ("\"NaN\"", None),
            ("\"inf\"", None),
            ("true", None),
            ("[1]", None),
            ("{}", None),
        ] {
            let expected = expected.map_or(TokenCount::Unreadable, TokenCount::Known);
            let read: TokenCount = serde_json::from_str(text).unwrap();
            assert_eq!(read, expected, "{text}");
        }
        let missing: Option<TokenCount> = serde_json::from_str("null").unwrap();
        assert_eq!(TokenCount::value_or_zero(missing), Ok(0));
    }
}
