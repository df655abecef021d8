//! Check: looks for damage and changes nothing.

use super::{
    checksum::Verdict,
    fault::Fault,
    journal, lanes, loops, remarks,
    sessions::{self, Complaint},
    survey::{AllKeys, Survey},
};
use crate::{Damage, DamagedPart, StoreError};
use rusqlite::Connection;
use std::collections::HashSet;
use turnery_engine::SessionId;

/// Complaints of SQLite about its pages and indexes; more are counted as one.
const COMPLAINTS: &str = "PRAGMA integrity_check(20)";

pub(super) fn check(db: &mut Connection, id: Option<&SessionId>) -> Result<Vec<Damage>, Fault> {
    // One snapshot: else a commit in between would look like damage.
    let db = db.transaction()?;
    if let Some(id) = id {
        return session(&db, id);
    }
    let mut damage = database(&db)?;
    // `None` if the pass does not reach the end of the table: then each session is looked for by itself.
    let keys = loops::undamaged(AllKeys::read(&db))?;
    for id in &all(&db)? {
        let keys = keys.as_ref().map(|keys| keys.of(id));
        damage.append(&mut session_of(&db, id, keys)?);
    }
    Ok(damage)
}

/// Also those whose id is not text: they are found by what can be read of it, or not at all.
fn all(db: &Connection) -> Result<Vec<SessionId>, Fault> {
    let mut select =
        db.prepare("SELECT CAST(session_id AS TEXT) FROM sessions ORDER BY session_id")?;
    let mut rows = select.query([])?;
    let mut ids = Vec::new();
    loop {
        match rows.next().map_err(Fault::from) {
            Ok(Some(row)) => ids.extend(row.get::<_, String>(0).map(SessionId::from)),
            Ok(None) => return Ok(ids),
            // The rest of the table is out of reach; the complaints about the database say so.
            Err(fault) if fault.is_damage() => return Ok(ids),
            Err(fault) => return Err(fault),
        }
    }
}

/// Damage of the file as a whole: its pages and indexes, and rows that belong to no session.
pub(super) fn database(db: &Connection) -> Result<Vec<Damage>, Fault> {
    let mut damage = Vec::new();
    match texts(db, COMPLAINTS) {
        Ok(complaints) => {
            let complaints = complaints.into_iter().filter(|text| text != "ok");
            damage
                .extend(complaints.map(|text| Damage::of_database(format!("is damaged: {text}"))));
        }
        Err(fault) if fault.is_damage() => {
            let reason = format!("is damaged: {}", fault.in_words());
            damage.push(Damage::of_database(reason));
        }
        Err(fault) => return Err(fault),
    }
    for table in ["loops", "texts", "remarks", "journal", "repairs"] {
        let sql = format!(
            "SELECT coalesce(CAST(session_id AS TEXT), '') || ' (' || count(*) || ')' FROM {table} \
             WHERE session_id NOT IN (SELECT session_id FROM sessions) GROUP BY session_id"
        );
        match texts(db, &sql) {
            Ok(orphans) => damage.extend(orphans.into_iter().map(|orphan| {
                let reason = format!("has rows in {table} of a session that is gone: {orphan}");
                Damage::of_database(reason)
            })),
            // Told already, by the complaints above.
            Err(fault) if fault.is_damage() => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(damage)
}

fn texts(db: &Connection, sql: &str) -> Result<Vec<String>, Fault> {
    let mut select = db.prepare(sql)?;
    let texts = select.query_map([], |row| {
        let bytes = row.get_ref(0)?.as_bytes().unwrap_or_default().to_vec();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    })?;
    Ok(texts.collect::<Result<_, _>>()?)
}

/// Damage of one session.
pub(super) fn session(db: &Connection, id: &SessionId) -> Result<Vec<Damage>, Fault> {
    session_of(db, id, None)
}

/// Damage of a session whose loops have these keys; `None` looks for them.
fn session_of(db: &Connection, id: &SessionId, keys: Option<&[i64]>) -> Result<Vec<Damage>, Fault> {
    let of = |part, reason: String| Damage::new(id, part, reason);
    let mut damage = Vec::new();
    let found = (|| {
        let complaints = columns(db, id)?
            .into_iter()
            .map(|Complaint { column, reason }| {
                of(
                    DamagedPart::Session,
                    format!("has {column} that cannot be read: {reason}"),
                )
            });
        damage.extend(complaints);
        let survey = match keys {
            Some(keys) => Survey::of_rows(db, id, keys)?,
            None => Survey::of(db, id)?,
        };
        let counts = Counts::of(db, id, &survey)?;
        damage.extend(
            counts
                .complaints()
                .map(|reason| of(DamagedPart::Session, reason)),
        );
        damage.extend(survey.damage);
        damage.append(&mut remarks::check(db, id)?);
        damage.append(&mut journal::check(db, id)?);
        Ok(())
    })();
    match found {
        Err(fault @ Fault::Told(StoreError::NotFound(_))) => Err(fault),
        Err(fault) if fault.is_damage() => {
            let reason = format!("cannot be read to its end: {}", fault.in_words());
            damage.push(of(DamagedPart::Session, reason));
            Ok(damage)
        }
        found => found.map(|()| damage),
    }
}

/// The columns of the session's own row that cannot be read.
pub(super) fn columns(db: &Connection, id: &SessionId) -> Result<Vec<Complaint>, Fault> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {} FROM sessions WHERE session_id = ?1",
        sessions::COLUMNS
    ))?;
    let mut rows = select.query((id.as_str(),))?;
    match rows.next()? {
        Some(row) => {
            let mut complaints = sessions::read(row).1;
            complaints.append(&mut lanes::complaints(db, id)?);
            Ok(complaints)
        }
        None => Err(StoreError::NotFound(id.clone()).into()),
    }
}

/// What the row of a session says of its loops, and what its loops say.
pub(super) struct Counts {
    head: u64,
    count: u64,
    /// The greatest version of a loop.
    pub(super) newest: u64,
    pub(super) stored: u64,
    /// Versions without a loop that no repair has taken notice of.
    pub(super) lost: Vec<u64>,
}

impl Counts {
    pub(super) fn of(db: &Connection, id: &SessionId, survey: &Survey) -> Result<Self, Fault> {
        let (head, count): (u64, u64) = db.query_row(
            "SELECT head_version, loop_count FROM sessions WHERE session_id = ?1",
            (id.as_str(),),
            |row| {
                Ok((
                    row.get(0).unwrap_or_default(),
                    row.get(1).unwrap_or_default(),
                ))
            },
        )?;
        let mut known: HashSet<u64> = survey.rows.iter().filter_map(|row| row.version).collect();
        let trusted = survey
            .rows
            .iter()
            .filter(|row| row.verdict != Verdict::Differs);
        let newest = trusted
            .filter_map(|row| row.version)
            .max()
            .unwrap_or_default();
        let mut select = db.prepare_cached(
            "SELECT before FROM repairs WHERE session_id = ?1 AND place = 'version'",
        )?;
        let told = select.query_map((id.as_str(),), |row| row.get::<_, u64>(0))?;
        known.extend(told.filter_map(Result::ok));
        // A damaged head is no reason to look for billions of them.
        let end = newest.max(head.min(newest + 64));
        let lost = (1..=end)
            .filter(|version| !known.contains(version))
            .take(64);
        Ok(Self {
            head,
            count,
            newest,
            stored: survey.rows.len() as u64,
            lost: lost.collect(),
        })
    }

    pub(super) fn is_head_wrong(&self) -> bool {
        self.head < self.newest
    }

    /// More may be counted: a number that was given out is not used again.
    pub(super) fn is_count_wrong(&self) -> bool {
        self.count < self.stored
    }

    fn complaints(&self) -> impl Iterator<Item = String> {
        let head = self.is_head_wrong().then(|| {
            format!(
                "says that it is at version {}, and has a loop of version {}",
                self.head, self.newest
            )
        });
        let count = self
            .is_count_wrong()
            .then(|| format!("counts {} loops, and has {}", self.count, self.stored));
        let lost = (!self.lost.is_empty()).then(|| {
            let versions: Vec<String> = self.lost.iter().map(u64::to_string).collect();
            format!(
                "has lost what was committed as version {}",
                versions.join(", ")
            )
        });
        [head, count, lost].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::lanes::tests::{claim_and_commit, open_with_sessions};
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    /// Instructions of SQLite that a check of all sessions takes, of which each has a loop.
    fn steps_of_a_check(session_count: usize) -> u64 {
        let folder = tempfile::tempdir().unwrap();
        let (mut db, ids) = open_with_sessions(&folder.path().join("sessions.db"), session_count);
        for id in &ids {
            claim_and_commit(&mut db, id, 1);
        }
        let steps = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&steps);
        let count = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            false
        };
        db.sql.progress_handler(1, Some(count)).unwrap();
        assert_eq!(check(&mut db.sql, None).unwrap(), []);
        steps.load(Ordering::Relaxed)
    }

    #[test]
    fn check_steps_grow_with_sessions_only() {
        let (few, many, more) = (
            steps_of_a_check(20),
            steps_of_a_check(100),
            steps_of_a_check(180),
        );
        let (first, second) = (many - few, more - many);
        assert!(second < first + first / 10, "{first} steps, then {second}");
    }
}
