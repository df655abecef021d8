//! Encodes the place of a follower as an opaque text that any process can go on from.

use crate::{StoreError, list_cursor::to_hex};
use crc32fast::Hasher;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{fmt, io, str::FromStr};
use turnery_engine::{Event, EventKind, LoopId};

/// First characters of every cursor of this version.
const VERSION: &str = "f1.";

/// Place in a followed session. Its text is stable over processes and releases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FollowCursor {
    /// Checksum of the time of the session's creation; 0 before the first page.
    pub(super) session: u32,
    /// Last loop that was sent to its end.
    pub(super) after: Option<LoopId>,
    /// Loops that were sent in part.
    pub(super) open: Vec<FollowedLoop>,
}

/// Loop that was sent in part. Its last row is identified by content, since a loop may be given up, and another one
/// begin with the same id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FollowedLoop {
    pub(super) loop_id: LoopId,
    /// Key of the journal row with the last event that was sent; 0 if the store has none.
    pub(super) entry: i64,
    /// Sequence number of the first event of that row.
    pub(super) first: u64,
    /// Sequence number of the last event that was sent.
    pub(super) last: u64,
    /// Checksum of the events of the row up to that one.
    pub(super) checksum: u32,
}

/// Form of a cursor in its text.
#[derive(Serialize, Deserialize)]
struct CursorFields {
    session: u32,
    after: Option<LoopId>,
    open: Vec<FollowedLoop>,
}

/// Error of a text that is not the cursor of a followed session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a cursor of a followed session: {1}; follow the session again without it")]
pub struct FollowCursorError(String, &'static str);

impl FollowCursor {
    /// Returns true if a loop was sent in part: as far as the cursor knows, it is running.
    #[must_use]
    pub fn has_open_loops(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns the cursor before the first loop after `after`, in a session that was created at this time.
    pub(crate) fn new(created_at: &str, after: Option<LoopId>) -> Self {
        Self {
            session: session_checksum(created_at),
            after,
            open: Vec::new(),
        }
    }

    /// Fails if the cursor is from a deleted session with the same id.
    pub(crate) fn check_session(&self, created_at: &str) -> Result<(), StoreError> {
        match self.session == session_checksum(created_at) {
            true => Ok(()),
            false => Err(self.error()),
        }
    }

    /// Returns the error of a cursor of another session.
    pub(crate) fn error(&self) -> StoreError {
        StoreError::BadCursor(self.to_string())
    }

    /// Returns the last loop that was sent to its end.
    pub(crate) fn after(&self) -> Option<&LoopId> {
        self.after.as_ref()
    }

    /// Returns the keys of the last rows of the open loops.
    #[cfg(feature = "postgres")]
    pub(crate) fn open_entries(&self) -> impl Iterator<Item = i64> {
        self.open.iter().map(|open| open.entry)
    }

    /// Returns the loops that were sent in part.
    pub(crate) fn open_loops(&self) -> impl Iterator<Item = &LoopId> {
        self.open.iter().map(|open| &open.loop_id)
    }

    /// Returns the sequence number with which the last row of an open loop begins.
    pub(crate) fn row_start(&self, loop_id: &LoopId) -> Option<u64> {
        self.open_loop(loop_id).map(|open| open.first)
    }

    /// Returns false if these events of a loop do not contain the last ones that were sent of it. True for a loop of
    /// which nothing was sent.
    pub(crate) fn is_continued<'e>(
        &self,
        loop_id: &LoopId,
        events: impl Iterator<Item = &'e Event>,
    ) -> bool {
        let Some(open) = self.open_loop(loop_id) else {
            return true;
        };
        let row = events.filter(|event| (open.first..=open.last).contains(&event.seq));
        let sent = row.filter(|event| is_sent(event));
        open.checksum == sent.fold(0, add_to_checksum)
    }

    pub(super) fn open_loop(&self, loop_id: &LoopId) -> Option<&FollowedLoop> {
        self.open.iter().find(|open| open.loop_id == *loop_id)
    }

    /// Removes an open loop. Returns true if there was one.
    pub(super) fn close_loop(&mut self, loop_id: &LoopId) -> bool {
        let count = self.open.len();
        self.open.retain(|open| open.loop_id != *loop_id);
        self.open.len() < count
    }

    /// Moves the cursor behind an event of a row of the journal, or of a stored loop, which is a row of its own. `entry` is
    /// the key of the row.
    pub(super) fn advance(&mut self, entry: i64, row: &[Event], event: &Event) {
        let first = row.first().map_or(event.seq, |first| first.seq);
        let known = self.open_loop(&event.loop_id);
        let known = known.filter(|open| open.entry == entry && open.first == first);
        let checksum = match known {
            Some(open) => add_to_checksum(open.checksum, event),
            None => {
                let until = row.iter().filter(|it| it.seq <= event.seq);
                until.filter(|it| is_sent(it)).fold(0, add_to_checksum)
            }
        };
        self.close_loop(&event.loop_id);
        self.open.push(FollowedLoop {
            loop_id: event.loop_id.clone(),
            entry,
            first,
            last: event.seq,
            checksum,
        });
    }
}

/// Returns false for events that no follower sees.
pub(super) fn is_sent(event: &Event) -> bool {
    !matches!(event.kind, EventKind::Delta { .. })
}

/// Returns true for events that are sent before their loop is stored. The end of a loop is published only after its
/// commit (R4).
pub(super) fn is_journalled(event: &Event) -> bool {
    is_sent(event)
        && !matches!(
            event.kind,
            EventKind::LoopEnd { .. } | EventKind::ParallelEnd { .. }
        )
}

/// Identifies a session among those that had its id.
fn session_checksum(created_at: &str) -> u32 {
    crc32fast::hash(created_at.as_bytes())
}

/// Continues a checksum with an event, without what may differ between the journal and the stored loop: the time of the
/// first events, which a claim predicts, and the states of tools, of which only the last one stays.
fn add_to_checksum(before: u32, event: &Event) -> u32 {
    let mut sum = ChecksumWriter(Hasher::new_with_initial(before));
    let mut stateless = None;
    if let EventKind::ToolExecutionEnd { envelope, .. } = &event.kind
        && envelope.state.is_some()
    {
        let mut kind = event.kind.clone();
        if let EventKind::ToolExecutionEnd { envelope, .. } = &mut kind {
            envelope.state = None;
        }
        stateless = Some(kind);
    }
    let kind = stateless.as_ref().unwrap_or(&event.kind);
    if let Err(error) = serde_json::to_writer(&mut sum, &(event.seq, event.turn_index, kind)) {
        // Such an event cannot have been journalled.
        tracing::debug!(%error, "an event cannot be encoded");
    }
    sum.0.finalize()
}

struct ChecksumWriter(Hasher);

impl io::Write for ChecksumWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Display for FollowCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = CursorFields {
            session: self.session,
            after: self.after.clone(),
            open: self.open.clone(),
        };
        let text = serde_json::to_string(&fields).map_err(|_| fmt::Error)?;
        let sum = crc32fast::hash(text.as_bytes()).to_be_bytes();
        let bytes = sum.into_iter().chain(text.bytes());
        write!(f, "{VERSION}{}", to_hex(bytes))
    }
}

impl FromStr for FollowCursor {
    type Err = FollowCursorError;

    fn from_str(text: &str) -> Result<Self, FollowCursorError> {
        let error = |why| FollowCursorError(text.chars().take(200).collect(), why);
        let damaged = || error("it is damaged, or from elsewhere");
        let Some(body) = text.strip_prefix(VERSION) else {
            let is_newer = text.strip_prefix('f').and_then(|it| it.split_once('.'));
            return Err(match is_newer {
                Some((number, _)) if number.parse::<u32>().is_ok() => {
                    error("it was made by a newer turnery")
                }
                _ => damaged(),
            });
        };
        let digits = body.as_bytes().chunks(2);
        let bytes = digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        let bytes = bytes.collect::<Option<Vec<u8>>>().ok_or_else(damaged)?;
        let (sum, json) = bytes.split_at_checked(4).ok_or_else(damaged)?;
        if sum != crc32fast::hash(json).to_be_bytes() {
            return Err(damaged());
        }
        let fields: CursorFields = serde_json::from_slice(json).map_err(|_| damaged())?;
        let cursor = Self {
            session: fields.session,
            after: fields.after,
            open: fields.open,
        };
        // Only the canonical text is accepted.
        match cursor.to_string() == text {
            true => Ok(cursor),
            false => Err(damaged()),
        }
    }
}

impl Serialize for FollowCursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FollowCursor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cursor() -> FollowCursor {
        FollowCursor {
            open: vec![FollowedLoop {
                loop_id: "s1.cfg.2".into(),
                entry: 7,
                first: 3,
                last: 5,
                checksum: 0xdead_beef,
            }],
            ..FollowCursor::new("2026-11-21T05:00:00.000000001Z", Some("s1.cfg.1".into()))
        }
    }

    #[test]
    fn encoded_follow_cursor_decodes_to_itself() {
        assert_eq!(cursor().to_string().parse(), Ok(cursor()));
        let json = serde_json::to_string(&cursor()).unwrap();
        assert_eq!(
            serde_json::from_str::<FollowCursor>(&json).unwrap(),
            cursor()
        );
    }

    #[test]
    fn changed_follow_cursor_is_refused() {
        let good = cursor().to_string();
        for place in 0..good.len() {
            let mut bad = good.clone().into_bytes();
            bad[place] = if bad[place] == b'0' { b'1' } else { b'0' };
            let bad = String::from_utf8(bad).unwrap();
            assert!(bad.parse::<FollowCursor>().is_err(), "{bad}");
        }
        let newer = good.replacen("f1.", "f2.", 1);
        let refused = newer.parse::<FollowCursor>().unwrap_err().to_string();
        assert!(refused.contains("a newer turnery"), "{refused}");
    }

    proptest! {
        #[test]
        fn garbage_is_refused_as_follow_cursor(text in ".*") {
            prop_assert!(text.parse::<FollowCursor>().is_err());
        }
    }
}
