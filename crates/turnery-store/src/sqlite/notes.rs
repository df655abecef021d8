//! Stores the notes of the transcript.

use super::{
    checksum::{Checksum, ChecksumVerdict},
    columns::text,
    job_error::{JobError, reason_if_damaged},
    sessions,
};
use crate::{Damage, DamagedPart, TranscriptNote};
use rusqlite::{Connection, Row, TransactionBehavior};
use turnery_engine::SessionId;

const SELECT_NOTES: &str = "SELECT body, checksum, remark FROM remarks \
     WHERE session_id = ?1 AND set_aside IS NULL ORDER BY remark";

pub(super) fn add(
    db: &mut Connection,
    id: &SessionId,
    notes: &[TranscriptNote],
) -> Result<(), JobError> {
    let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    sessions::get(&db, id)?;
    let mut insert =
        db.prepare_cached("INSERT INTO remarks (session_id, body, checksum) VALUES (?1, ?2, ?3)")?;
    for note in notes {
        let body = serde_json::to_string(note)?;
        let checksum = Checksum::default().text(id.as_str()).text(&body).finish();
        insert.execute((id.as_str(), body, checksum))?;
    }
    drop(insert);
    db.commit()?;
    Ok(())
}

/// Returns the readable notes.
pub(super) fn read_all(
    db: &mut Connection,
    id: &SessionId,
) -> Result<Vec<TranscriptNote>, JobError> {
    let db = db.transaction()?;
    sessions::get(&db, id)?;
    let mut notes = Vec::new();
    for_each_note(&db, id, |_, read, complaint| {
        if let Some(reason) = complaint {
            tracing::warn!(session = %id, reason, "a note of the transcript is damaged");
        }
        notes.extend(read.map(|(note, _)| note));
    })?;
    Ok(notes)
}

/// Returns the damage in the notes of a session.
pub(super) fn check(db: &Connection, id: &SessionId) -> Result<Vec<Damage>, JobError> {
    let mut damage = Vec::new();
    for_each_note(db, id, |note, _, complaint| {
        let part = DamagedPart::Note { note };
        damage.extend(complaint.map(|reason| Damage::new(id, part, reason)));
    })?;
    Ok(damage)
}

/// Sets unreadable notes aside, and updates the checksums of the others. Returns the changes.
pub(super) fn repair(db: &Connection, id: &SessionId) -> Result<Vec<String>, JobError> {
    let mut damaged = Vec::new();
    for_each_note(db, id, |key, read, complaint| {
        damaged.extend(complaint.map(|reason| (key, read.map(|(_, sum)| sum), reason)));
    })?;
    let mut changes = Vec::new();
    for (key, checksum, reason) in damaged {
        if let Some(checksum) = checksum {
            db.execute(
                "UPDATE remarks SET checksum = ?2 WHERE remark = ?1",
                (key, checksum),
            )?;
            changes.push(format!("note {key} is kept as it reads; it {reason}"));
        } else {
            db.execute(
                "UPDATE remarks SET set_aside = ?2 WHERE remark = ?1",
                (key, &reason),
            )?;
            changes.push(format!("note {key} is set aside; it {reason}"));
        }
    }
    Ok(changes)
}

/// Calls `take` for each note with its key, the note and its actual checksum if readable, and its damage.
fn for_each_note(
    db: &Connection,
    id: &SessionId,
    mut take: impl FnMut(i64, Option<(TranscriptNote, i64)>, Option<String>),
) -> Result<(), JobError> {
    let mut select = db.prepare_cached(SELECT_NOTES)?;
    let mut rows = select.query((id.as_str(),))?;
    while let Some(row) = rows.next()? {
        let key = row.get(2)?;
        match reason_if_damaged(parse_note(row))? {
            Err(reason) => take(key, None, Some(format!("cannot be read: {reason}"))),
            Ok(note) => {
                let sum = Checksum::default().text(id.as_str()).columns(row, [0])?;
                let differs = sum.clone().verify(row.get_ref(1)?) == ChecksumVerdict::Differs;
                let complaint = "differs from what was written: its checksum does not match";
                let complaint = differs.then(|| complaint.to_owned());
                take(key, Some((note, sum.finish())), complaint);
            }
        }
    }
    Ok(())
}

fn parse_note(row: &Row<'_>) -> Result<TranscriptNote, JobError> {
    Ok(serde_json::from_str(text(row, 0)?)?)
}
