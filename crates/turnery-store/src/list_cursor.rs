//! Encodes the position of a list page as an opaque cursor, stable while sessions are added and removed.

use crate::StoreError;
use chrono::SecondsFormat;
use sha2::{Digest, Sha256};
use turnery_engine::{LoopRecord, SessionId, Timestamp};

/// Number of sessions in a page of [`Store::list`](crate::Store::list) if the query sets no limit.
pub const PAGE_SIZE: usize = 100;

/// Last session of a page; the next page starts below it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ListCursor {
    pub(crate) updated_at: String,
    pub(crate) id: SessionId,
}

impl ListCursor {
    pub(crate) fn after(updated_at: Timestamp, id: SessionId) -> Self {
        Self {
            updated_at: format_time(updated_at),
            id,
        }
    }

    pub(crate) fn encode(&self) -> String {
        let text = format!("{} {}", self.updated_at, self.id);
        to_hex(cursor_checksum(&text).into_iter().chain(text.bytes()))
    }

    pub(crate) fn decode(cursor: &str) -> Result<Self, StoreError> {
        Self::parse(cursor).ok_or_else(|| StoreError::BadCursor(cursor.chars().take(200).collect()))
    }

    fn parse(cursor: &str) -> Option<Self> {
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
        // Only the canonical encoding is accepted.
        (sealed == cursor_checksum(text) && whole.encode() == cursor).then_some(whole)
    }
}

/// Writes each byte as two hexadecimal digits.
pub(crate) fn to_hex(bytes: impl IntoIterator<Item = u8>) -> String {
    let bytes = bytes.into_iter();
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a checksum that tells cursors from other hexadecimal text; not a security measure.
fn cursor_checksum(text: &str) -> [u8; 4] {
    let hash = Sha256::digest(text.as_bytes());
    [hash[0], hash[1], hash[2], hash[3]]
}

/// Formats a time exactly and with fixed width, so that text order is time order.
pub(crate) fn format_time(at: Timestamp) -> String {
    at.to_rfc3339_opts(SecondsFormat::Nanos, true)
}

/// Returns the time at which a loop was last active, which orders its session in lists.
pub(crate) fn last_active_at(record: &LoopRecord) -> Timestamp {
    record.ended_at.unwrap_or(record.started_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn encoded_cursor_decodes_to_itself() {
        let at = "2026-11-21T05:00:00.5Z".parse().unwrap();
        let cursor = ListCursor::after(at, SessionId::from("s1"));
        assert_eq!(cursor.updated_at, "2026-11-21T05:00:00.500000000Z");
        assert_eq!(ListCursor::decode(&cursor.encode()), Ok(cursor));
    }

    #[test]
    fn cursor_with_one_changed_character_is_refused() {
        let at = "2026-11-21T05:00:00Z".parse().unwrap();
        let good = ListCursor::after(at, SessionId::from("s1")).encode();
        for place in 0..good.len() {
            let mut bad = good.clone().into_bytes();
            bad[place] = if bad[place] == b'0' { b'1' } else { b'0' };
            let bad = String::from_utf8(bad).unwrap();
            assert_eq!(ListCursor::decode(&bad), Err(StoreError::BadCursor(bad)));
        }
        let shouted = good.to_uppercase();
        assert_eq!(
            ListCursor::decode(&shouted),
            Err(StoreError::BadCursor(shouted))
        );
    }

    proptest! {
        /// LIST-3: invalid cursors are refused without a panic.
        #[test]
        fn garbage_is_refused_as_cursor(text in ".*") {
            prop_assert!(matches!(ListCursor::decode(&text), Err(StoreError::BadCursor(_))));
        }
    }
}
