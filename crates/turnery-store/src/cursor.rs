//! Cursor: where the next page of a list begins. Opaque to others, stable while sessions come and go.

use crate::StoreError;
use chrono::SecondsFormat;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use turnery_engine::{LoopRecord, SessionId, Timestamp};

/// The last session of a page; the next page begins below it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cursor {
    pub(crate) updated_at: String,
    pub(crate) id: SessionId,
}

impl Cursor {
    pub(crate) fn after(updated_at: Timestamp, id: SessionId) -> Self {
        Self {
            updated_at: time_text(updated_at),
            id,
        }
    }

    pub(crate) fn encode(&self) -> String {
        let text = format!("{} {}", self.updated_at, self.id);
        let mut hex = String::with_capacity(2 * text.len() + 8);
        for byte in seal(&text).iter().chain(text.as_bytes()) {
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }

    pub(crate) fn decode(cursor: &str) -> Result<Self, StoreError> {
        Self::read(cursor).ok_or_else(|| StoreError::BadCursor(cursor.chars().take(200).collect()))
    }

    fn read(cursor: &str) -> Option<Self> {
        let bytes = cursor
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
            .collect::<Option<Vec<u8>>>()?;
        let (sealed, text) = bytes.split_at_checked(4)?;
        let text = std::str::from_utf8(text).ok()?;
        let (updated_at, id) = text.split_once(' ')?;
        let whole = Self {
            updated_at: updated_at.to_owned(),
            id: SessionId::from(id),
        };
        // The text must be the one that we would have written: no other spelling passes.
        (sealed == seal(text) && whole.encode() == cursor).then_some(whole)
    }
}

/// Tells our cursors from other hexadecimal text; it keeps no secret.
fn seal(text: &str) -> [u8; 4] {
    let hash = Sha256::digest(text.as_bytes());
    [hash[0], hash[1], hash[2], hash[3]]
}

/// A time as it is stored: fixed width, so that text order is time order, and exact.
pub(crate) fn time_text(at: Timestamp) -> String {
    at.to_rfc3339_opts(SecondsFormat::Nanos, true)
}

/// When a loop was last active: what it moves its session to in a list.
pub(crate) fn last_active(record: &LoopRecord) -> Timestamp {
    record.ended_at.unwrap_or(record.started_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cursor_comes_back_as_it_went() {
        let at = "2026-11-21T05:00:00.5Z".parse().unwrap();
        let cursor = Cursor::after(at, SessionId::from("s1"));
        assert_eq!(cursor.updated_at, "2026-11-21T05:00:00.500000000Z");
        assert_eq!(Cursor::decode(&cursor.encode()), Ok(cursor));
    }

    #[test]
    fn one_changed_character_is_noticed() {
        let at = "2026-11-21T05:00:00Z".parse().unwrap();
        let good = Cursor::after(at, SessionId::from("s1")).encode();
        for place in 0..good.len() {
            let mut bad = good.clone().into_bytes();
            bad[place] = if bad[place] == b'0' { b'1' } else { b'0' };
            let bad = String::from_utf8(bad).unwrap();
            assert_eq!(Cursor::decode(&bad), Err(StoreError::BadCursor(bad)));
        }
        let shouted = good.to_uppercase();
        assert_eq!(
            Cursor::decode(&shouted),
            Err(StoreError::BadCursor(shouted))
        );
    }

    proptest! {
        /// LIST-3: garbage is refused, and never panics.
        #[test]
        fn garbage_is_no_cursor(text in ".*") {
            prop_assert!(matches!(Cursor::decode(&text), Err(StoreError::BadCursor(_))));
        }
    }
}
