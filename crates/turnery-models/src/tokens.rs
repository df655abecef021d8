//! Token counts as servers write them: a number, a float, a string, or nonsense.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Larger counts cannot be told apart in JSON, and nobody has that many tokens.
const LARGEST: u64 = 1 << 53;

/// A token count of a usage report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tokens {
    Known(u64),
    /// Negative, broken, huge, or no number. It makes the usage unknown, never zero.
    Unreadable,
}

impl Tokens {
    fn of(text: &str) -> Self {
        let text = text.trim_matches('"').trim();
        let whole = text.parse::<u64>().ok().or_else(|| {
            let float = text.parse::<f64>().ok()?;
            let is_whole = float >= 0.0 && float.fract() == 0.0;
            is_whole.then(|| format!("{:.0}", float.abs()).parse().ok())?
        });
        match whole.filter(|count| *count <= LARGEST) {
            Some(count) => Self::Known(count),
            None => Self::Unreadable,
        }
    }

    /// The count of a field that may be missing, which is zero.
    ///
    /// # Errors
    ///
    /// The field is there and cannot be read.
    pub(crate) fn or_zero(field: Option<Self>) -> Result<u64, Unreadable> {
        match field {
            Some(Self::Known(count)) => Ok(count),
            Some(Self::Unreadable) => Err(Unreadable),
            None => Ok(0),
        }
    }
}

/// A count of a usage report cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

impl<'de> Deserialize<'de> for Tokens {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(from).map(|raw| Self::of(raw.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_in_every_form_and_never_guessed() {
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
            let expected = expected.map_or(Tokens::Unreadable, Tokens::Known);
            let read: Tokens = serde_json::from_str(text).unwrap();
            assert_eq!(read, expected, "{text}");
        }
        let missing: Option<Tokens> = serde_json::from_str("null").unwrap();
        assert_eq!(Tokens::or_zero(missing), Ok(0));
    }
}
