//! Collects the long texts of a write, and fetches those of rows that were read.

use super::{
    connection::Connection, pg_error::PgError, rows::Columns, session_queue::SessionQueue,
};
use crate::{
    StoreError,
    encoding::{
        long_texts::{self, TextSink, check_text},
        row_error::RowError,
    },
};
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};
use tokio_postgres::types::ToSql;
use turnery_engine::SessionId;

const SELECT: &str = "SELECT name, string_agg(body, '' ORDER BY piece) FROM texts \
     WHERE session_id = $1 AND name = ANY ($2) GROUP BY name";

/// Part of a statement that stores long texts, the three parameters of [`NewTexts`], in the session of the part `lane`.
macro_rules! store_texts {
    ($names:literal, $pieces:literal, $bodies:literal) => {
        concat!(
            ", long AS (INSERT INTO texts (session_id, name, piece, body) SELECT lane.session_id, t.* \
                 FROM lane, unnest(",
            $names,
            "::text[], ",
            $pieces,
            "::integer[], ",
            $bodies,
            "::text[]) AS t ON CONFLICT DO NOTHING)"
        )
    };
}
pub(super) use store_texts;

/// Long texts that are new to a session, for a statement that writes them. One that the session has is ignored there.
#[derive(Default)]
pub(super) struct NewTexts {
    /// Names that this process has stored before.
    known: HashSet<String>,
    pub(super) names: Vec<String>,
    pub(super) pieces: Vec<i32>,
    pub(super) bodies: Vec<String>,
}

impl NewTexts {
    /// Returns the parameters of [`store_texts`].
    pub(super) fn parameters(&self) -> [&(dyn ToSql + Sync); 3] {
        [&self.names, &self.pieces, &self.bodies]
    }

    /// Collects texts other than those that were stored under the lane with this fence.
    pub(super) fn unknown_to(queue: &SessionQueue, fence: u64) -> Self {
        Self {
            known: queue.with_texts(fence, |known| known.clone()),
            ..Self::default()
        }
    }

    /// Notes that the texts are stored.
    pub(super) fn note_stored(self, queue: &SessionQueue, fence: u64) {
        if !self.names.is_empty() {
            queue.with_texts(fence, |known| known.extend(self.names));
        }
    }
}

/// Error of encoding a row whose texts are collected.
#[derive(Debug)]
pub(super) enum EncodeError {
    Store(StoreError),
    Row(RowError),
}

impl From<StoreError> for EncodeError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<RowError> for EncodeError {
    fn from(error: RowError) -> Self {
        Self::Row(error)
    }
}

impl From<EncodeError> for PgError {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::Store(error) => Self::Store(error),
            EncodeError::Row(error) => Self::Row(error),
        }
    }
}

impl TextSink for NewTexts {
    type Error = EncodeError;

    fn contains(&mut self, name: &str) -> Result<bool, EncodeError> {
        Ok(self.known.contains(name) || self.names.iter().any(|it| it == name))
    }

    fn insert_piece(&mut self, name: &str, piece: u32, body: &str) -> Result<(), EncodeError> {
        let piece =
            i32::try_from(piece).map_err(|_| RowError::Invalid("a text is too long".to_owned()))?;
        self.names.push(name.to_owned());
        self.pieces.push(piece);
        self.bodies.push(body.to_owned());
        Ok(())
    }
}

/// Long texts that rows refer to.
#[derive(Default)]
pub(super) struct FetchedTexts(HashMap<String, String>);

impl FetchedTexts {
    /// Fetches the texts that these parts of rows refer to; no round trip if there is none.
    pub(super) async fn fetch<'t>(
        connection: &Connection,
        session: &SessionId,
        parts: impl IntoIterator<Item = &'t str>,
    ) -> Result<Self, PgError> {
        let mut names: Vec<&str> = parts
            .into_iter()
            .flat_map(long_texts::referenced_names)
            .collect();
        if names.is_empty() {
            return Ok(Self::default());
        }
        names.sort_unstable();
        names.dedup();
        let rows = connection
            .query(SELECT, &[&session.as_str(), &names])
            .await?;
        let texts = rows.iter().map(|row| {
            let row = Columns(row);
            Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()))
        });
        Ok(Self(texts.collect::<Result<_, PgError>>()?))
    }

    /// Returns the JSON of a row with references replaced by their texts.
    pub(super) fn expand<'t>(&self, json: &'t str) -> Result<Cow<'t, str>, RowError> {
        long_texts::expand_references(json, |name, out| {
            let text = self.0.get(name).map_or("", String::as_str);
            check_text(name, text)?;
            out.push_str(text);
            Ok(())
        })
    }
}
