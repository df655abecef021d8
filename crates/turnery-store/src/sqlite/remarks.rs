//! Remarks: what was said beside the conversation.

use super::{
    checksum::{Checksum, Verdict},
    fault::Fault,
    loops::{text, undamaged_or},
    sessions,
};
use crate::{Damage, DamagedPart, Remark};
use rusqlite::{Connection, Row, TransactionBehavior};
use turnery_engine::SessionId;

const ALL: &str = "SELECT body, checksum, remark FROM remarks \
     WHERE session_id = ?1 AND set_aside IS NULL ORDER BY remark";

pub(super) fn add(db: &mut Connection, id: &SessionId, said: &[Remark]) -> Result<(), Fault> {
    let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    sessions::get(&db, id)?;
    let mut insert =
        db.prepare_cached("INSERT INTO remarks (session_id, body, checksum) VALUES (?1, ?2, ?3)")?;
    for remark in said {
        let body = serde_json::to_string(remark)?;
        let checksum = Checksum::default().text(id.as_str()).text(&body).finish();
        insert.execute((id.as_str(), body, checksum))?;
    }
    drop(insert);
    db.commit()?;
    Ok(())
}

/// Those that can be read.
pub(super) fn all(db: &mut Connection, id: &SessionId) -> Result<Vec<Remark>, Fault> {
    let db = db.transaction()?;
    sessions::get(&db, id)?;
    let mut said = Vec::new();
    each(&db, id, |_, read, complaint| {
        if let Some(reason) = complaint {
            tracing::warn!(session = %id, reason, "a note of the transcript is damaged");
        }
        said.extend(read);
    })?;
    Ok(said)
}

/// What is wrong with the notes of a session.
pub(super) fn check(db: &Connection, id: &SessionId) -> Result<Vec<Damage>, Fault> {
    let mut damage = Vec::new();
    each(db, id, |remark, _, complaint| {
        let part = DamagedPart::Remark { remark };
        damage.extend(complaint.map(|reason| Damage::new(id, part, reason)));
    })?;
    Ok(damage)
}

/// Sets aside what cannot be read, and gives the others the checksum of what they are. Returns what was
/// changed.
pub(super) fn repair(db: &Connection, id: &SessionId) -> Result<Vec<String>, Fault> {
    let mut damaged = Vec::new();
    each(db, id, |remark, read, complaint| {
        damaged.extend(complaint.map(|reason| (remark, read.is_some(), reason)));
    })?;
    let mut changes = Vec::new();
    for (remark, is_readable, reason) in damaged {
        if is_readable {
            let body: String = db.query_row(
                "SELECT body FROM remarks WHERE remark = ?1",
                (remark,),
                |row| row.get(0),
            )?;
            let checksum = Checksum::default().text(id.as_str()).text(&body).finish();
            db.execute(
                "UPDATE remarks SET checksum = ?2 WHERE remark = ?1",
                (remark, checksum),
            )?;
            changes.push(format!("note {remark} is kept as it reads; it {reason}"));
        } else {
            db.execute(
                "UPDATE remarks SET set_aside = ?2 WHERE remark = ?1",
                (remark, &reason),
            )?;
            changes.push(format!("note {remark} is set aside; it {reason}"));
        }
    }
    Ok(changes)
}

/// Gives each note to `take`: its key, the note if it can be read, and what is wrong with it.
fn each(
    db: &Connection,
    id: &SessionId,
    mut take: impl FnMut(i64, Option<Remark>, Option<String>),
) -> Result<(), Fault> {
    let mut select = db.prepare_cached(ALL)?;
    let mut rows = select.query((id.as_str(),))?;
    while let Some(row) = rows.next()? {
        let key = row.get(2)?;
        match undamaged_or(read(row))? {
            Err(reason) => take(key, None, Some(format!("cannot be read: {reason}"))),
            Ok(remark) => {
                let sum = Checksum::default().text(id.as_str()).columns(row, [0])?;
                let differs = sum.verify(row.get_ref(1)?) == Verdict::Differs;
                let complaint = "differs from what was written: its checksum does not match";
                take(key, Some(remark), differs.then(|| complaint.to_owned()));
            }
        }
    }
    Ok(())
}

fn read(row: &Row<'_>) -> Result<Remark, Fault> {
    Ok(serde_json::from_str(text(row, 0)?)?)
}
