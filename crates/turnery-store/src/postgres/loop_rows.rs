//! Reads rows of the table `loops`.

use super::{
    connection::Connection,
    pg_error::PgError,
    rows::{Columns, to_integer},
    texts::FetchedTexts,
};
use crate::{
    StoreError,
    encoding::{
        checksum::{Checksum, ChecksumVerdict},
        event_log::{self, logged_parent},
        loop_columns::LoopColumns,
        loop_row::loop_checksum,
        row_error::RowError,
        survey::{DamagedColumn, Survey, SurveyedLoop},
    },
};
use tokio_postgres::Row;
use turnery_engine::{LoopId, LoopRecord, SessionId};

/// Columns of a loop after the tip of its session. A session without loops has one row, whose loop is NULL.
macro_rules! loop_columns {
    ($log:expr) => {
        concat!(
            "SELECT s.tip_loop_id, l.loop, l.version, l.loop_id, l.parent_loop_id, l.continuation_kind, l.status, \
             l.on_chain, l.started_at, l.ended_at, l.record, l.messages, l.checksum, l.log_checksum, \
             l.set_aside IS NOT NULL, octet_length(l.log)::bigint, ",
            $log,
            " FROM sessions s LEFT JOIN loops l ON l.session_id = s.session_id AND "
        )
    };
}

const SELECT_WITHOUT_LOG: &str = concat!(
    loop_columns!("NULL::text"),
    "l.set_aside IS NULL WHERE s.session_id = $1 ORDER BY l.loop"
);

const SELECT_NEWER: &str = concat!(
    loop_columns!("l.log"),
    "l.set_aside IS NULL AND l.version > $2 WHERE s.session_id = $1 ORDER BY l.loop"
);

const SELECT_KEYS: &str = concat!(
    loop_columns!("l.log"),
    "l.loop = ANY ($2) WHERE s.session_id = $1 ORDER BY l.loop"
);

const SELECT_ALL: &str = concat!(
    loop_columns!("l.log"),
    "TRUE WHERE s.session_id = $1 ORDER BY l.loop"
);

/// Rows of a session, with the long texts that they refer to.
pub(super) struct LoopRows {
    session: SessionId,
    rows: Vec<Row>,
    texts: FetchedTexts,
    pub(super) tip: Option<LoopId>,
}

/// Selection of rows.
pub(super) enum Selection<'a> {
    /// Rows that are not set aside, without their events.
    WithoutLog,
    /// Rows of versions after this one that are not set aside.
    Newer(u64),
    /// Rows with these keys.
    Keys(&'a [i64]),
    /// All rows.
    All,
}

impl LoopRows {
    /// Reads rows, oldest first. All of them are of one moment (S3).
    pub(super) async fn read(
        connection: &Connection,
        session: &SessionId,
        selection: Selection<'_>,
    ) -> Result<Self, PgError> {
        let id = session.as_str();
        let mut rows = match selection {
            Selection::WithoutLog => connection.query(SELECT_WITHOUT_LOG, &[&id]).await?,
            Selection::Newer(after) => {
                let after = to_integer(after);
                connection.query(SELECT_NEWER, &[&id, &after]).await?
            }
            Selection::Keys(keys) => connection.query(SELECT_KEYS, &[&id, &keys]).await?,
            Selection::All => connection.query(SELECT_ALL, &[&id]).await?,
        };
        let first = rows
            .first()
            .ok_or_else(|| StoreError::NotFound(session.clone()))?;
        let tip = Columns(first).optional_text(0)?.map(LoopId::from);
        if Columns(first).optional_integer(1)?.is_none() {
            rows.clear();
        }
        let mut parts = Vec::new();
        for row in rows.iter().map(Columns) {
            parts.extend([row.text(10)?, row.text(11)?]);
            parts.extend(row.optional_text(16)?);
        }
        let texts = FetchedTexts::fetch(connection, session, parts).await?;
        Ok(Self {
            session: session.clone(),
            rows,
            texts,
            tip,
        })
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = LoopView<'_>> {
        self.rows.iter().map(|row| LoopView {
            rows: self,
            row: Columns(row),
        })
    }

    /// Judges all rows.
    pub(super) fn into_survey(self) -> Result<Survey, PgError> {
        let surveyed = self.iter().map(LoopView::survey);
        let surveyed: Vec<_> = surveyed.collect::<Result<_, PgError>>()?;
        Ok(Survey::new(&self.session, self.tip, surveyed))
    }
}

/// A row of the table.
#[derive(Clone, Copy)]
pub(super) struct LoopView<'a> {
    rows: &'a LoopRows,
    row: Columns<'a>,
}

impl<'a> LoopView<'a> {
    pub(super) fn key(self) -> Result<i64, PgError> {
        self.row.integer(1)
    }

    pub(super) fn version(self) -> Result<u64, PgError> {
        self.row.count(2)
    }

    pub(super) fn loop_id(self) -> Result<&'a str, PgError> {
        self.row.text(3)
    }

    pub(super) fn parent(self) -> Result<Option<&'a str>, PgError> {
        self.row.optional_text(4)
    }

    pub(super) fn on_chain(self) -> Result<bool, PgError> {
        self.row.boolean(7)
    }

    /// Size of the events. Unit: bytes as stored.
    pub(super) fn log_bytes(self) -> Result<usize, PgError> {
        Ok(usize::try_from(self.row.integer(15)?).unwrap_or(usize::MAX))
    }

    /// Returns the events as stored.
    pub(super) fn log(self) -> Result<&'a str, PgError> {
        Ok(self.row.optional_text(16)?.unwrap_or("[]"))
    }

    /// Returns true if the row without its events is as written.
    pub(super) fn is_head_intact(self) -> Result<bool, PgError> {
        let sum = self.checksum(self.parent()?, self.on_chain()?)?;
        Ok(sum.verify_integer(Some(self.row.integer(12)?)) == ChecksumVerdict::Matches)
    }

    /// Returns true if the events are as written.
    pub(super) fn is_log_intact(self) -> Result<bool, PgError> {
        let sum = Checksum::default().text(self.log()?);
        Ok(sum.verify_integer(Some(self.row.integer(13)?)) == ChecksumVerdict::Matches)
    }

    /// Returns the checksum of the row without its events, with this parent and place on the chain.
    pub(super) fn checksum(
        self,
        parent: Option<&str>,
        on_chain: bool,
    ) -> Result<Checksum, PgError> {
        let columns = [
            Some(self.row.text(5)?),
            Some(self.row.text(6)?),
            Some(self.row.text(8)?),
            self.row.optional_text(9)?,
            Some(self.row.text(10)?),
            Some(self.row.text(11)?),
        ];
        let ids = (&self.rows.session, self.loop_id()?, parent);
        Ok(loop_checksum(ids, self.row.integer(2)?, on_chain, &columns))
    }

    /// Returns the checksums of the row without its events, and of its events, as they are now.
    pub(super) fn actual_checksums(self) -> Result<(i64, i64), PgError> {
        let head = self.checksum(self.parent()?, self.on_chain()?)?;
        Ok((
            head.finish(),
            Checksum::default().text(self.log()?).finish(),
        ))
    }

    /// Returns the record without its events.
    pub(super) fn read_record(self) -> Result<Result<LoopRecord, RowError>, PgError> {
        let columns = LoopColumns {
            loop_id: self.loop_id()?,
            parent_loop_id: self.parent()?,
            continuation_kind: self.row.text(5)?,
            status: self.row.text(6)?,
            on_chain: self.on_chain()?,
            started_at: self.row.text(8)?,
            ended_at: self.row.optional_text(9)?,
            record: self.row.text(10)?,
            messages: self.row.text(11)?,
        };
        let expand = |json| self.rows.texts.expand(json);
        Ok(columns.read_record(&self.rows.session, &mut String::new(), expand))
    }

    /// Returns the events with their long texts.
    pub(super) fn expand_log(self) -> Result<Result<String, RowError>, PgError> {
        let log = self.rows.texts.expand(self.log()?);
        Ok(log.map(|log| log.into_owned()))
    }

    /// Returns the record with its events.
    pub(super) fn read_record_with_events(self) -> Result<Result<LoopRecord, RowError>, PgError> {
        let mut record = match self.read_record()? {
            Ok(record) => record,
            Err(error) => return Ok(Err(error)),
        };
        let log = match self.rows.texts.expand(self.log()?) {
            Ok(log) => log,
            Err(error) => return Ok(Err(error)),
        };
        let mut at = 0;
        loop {
            match event_log::next_event(&log, &mut at, &record, &[]) {
                Ok(Some(event)) => record.events.push(event),
                Ok(None) => return Ok(Ok(record)),
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    fn survey(self) -> Result<(SurveyedLoop, Option<String>), PgError> {
        let is_set_aside = self.row.boolean(14)?;
        let verdict = match self.is_head_intact()? && self.is_log_intact()? {
            true => ChecksumVerdict::Matches,
            false => ChecksumVerdict::Differs,
        };
        let surveyed = SurveyedLoop {
            key: self.key()?,
            version: Some(self.version()?),
            loop_id: self.loop_id()?.into(),
            parent: self.parent()?.map(LoopId::from),
            logged_parent: logged_parent(self.log()?),
            verdict,
            damaged_column: None,
            is_set_aside,
            is_log_broken: false,
            is_from_newer_version: false,
            record: None,
            previous: None,
            is_relinked: false,
        };
        if is_set_aside {
            return Ok((surveyed, None));
        }
        let log = self.rows.texts.expand(self.log()?);
        let log = log.map_err(|error| error.to_string());
        surveyed.judge(self.read_record()?, log, |logged| self.find_culprit(logged))
    }

    /// Returns the column whose correction makes the checksum match.
    fn find_culprit(
        self,
        logged: Option<&Option<LoopId>>,
    ) -> Result<Option<DamagedColumn>, PgError> {
        if !self.is_log_intact()? {
            return Ok(None);
        }
        let stored = Some(self.row.integer(12)?);
        let matches = |sum: Checksum| sum.verify_integer(stored) == ChecksumVerdict::Matches;
        let parent = logged.map(|parent| parent.as_ref().map(LoopId::as_str));
        if let Some(parent) = parent
            && matches(self.checksum(parent, self.on_chain()?)?)
        {
            return Ok(Some(DamagedColumn::Parent));
        }
        let is_chain = matches(self.checksum(self.parent()?, !self.on_chain()?)?);
        Ok(is_chain.then_some(DamagedColumn::OnChain))
    }
}
