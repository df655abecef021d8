//! Remarks: what was said beside the conversation.

use super::{fault::Fault, loops::text, sessions};
use crate::Remark;
use rusqlite::{Connection, TransactionBehavior};
use turnery_engine::SessionId;

pub(super) fn add(db: &mut Connection, id: &SessionId, said: &[Remark]) -> Result<(), Fault> {
    let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    sessions::get(&db, id)?;
    let mut insert = db.prepare_cached("INSERT INTO remarks (session_id, body) VALUES (?1, ?2)")?;
    for remark in said {
        insert.execute((id.as_str(), serde_json::to_string(remark)?))?;
    }
    drop(insert);
    db.commit()?;
    Ok(())
}

pub(super) fn all(db: &mut Connection, id: &SessionId) -> Result<Vec<Remark>, Fault> {
    let db = db.transaction()?;
    sessions::get(&db, id)?;
    let mut select =
        db.prepare_cached("SELECT body FROM remarks WHERE session_id = ?1 ORDER BY remark")?;
    let mut rows = select.query((id.as_str(),))?;
    let mut said = Vec::new();
    while let Some(row) = rows.next()? {
        said.push(serde_json::from_str(text(row, 0)?)?);
    }
    Ok(said)
}
