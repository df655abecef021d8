//! `turnery sessions check` and `repair`: looks for damage in stored sessions, and mends it.

use crate::{run::exit, show::plain};
use serde::Serialize;
use std::{
    io::{self, Write},
    process::ExitCode,
};
use turnery_engine::SessionId;
use turnery_store::{Archived, Damage, ListQuery, Repair, Store, StoreError};

/// Looks for damage, and with `repair` mends it.
pub(super) async fn check(
    store: &dyn Store,
    id: Option<&SessionId>,
    json: bool,
    mend: bool,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let damage = store.check(id).await?;
    if mend && !damage.is_empty() {
        let mut ids: Vec<SessionId> = match id {
            Some(id) => vec![id.clone()],
            None => damage
                .iter()
                .filter_map(|it| it.session_id.clone())
                .collect(),
        };
        ids.dedup();
        if ids.is_empty() {
            // The database as a whole is mended along with any session of it.
            ids.extend(any(store).await?);
        }
        return repair(store, &ids, json, out).await;
    }
    if json {
        serde_json::to_writer_pretty(&mut *out, &damage)?;
        writeln!(out)?;
    } else {
        list(&damage, out)?;
        match damage.is_empty() {
            true => writeln!(out, "no damage was found")?,
            false => writeln!(
                io::stderr(),
                "turnery: {} problem(s) found; `turnery sessions repair ID` mends a session and keeps a \
                 copy of it as it is",
                damage.len()
            )?,
        }
    }
    Ok(code(damage.is_empty()))
}

async fn any(store: &dyn Store) -> Result<Option<SessionId>, StoreError> {
    let query = ListQuery {
        spawned: true,
        archived: Archived::Include,
        limit: 1,
        ..ListQuery::default()
    };
    let page = store.list(query).await?;
    Ok(page.sessions.into_iter().next().map(|session| session.id))
}

/// One line for each problem, the sessions apart.
fn list(damage: &[Damage], out: &mut impl Write) -> io::Result<()> {
    let mut last = None;
    for problem in damage {
        if last != Some(&problem.session_id) {
            match &problem.session_id {
                Some(id) => writeln!(out, "session {}:", plain(id.as_str()))?,
                None => writeln!(out, "database:")?,
            }
        }
        last = Some(&problem.session_id);
        writeln!(out, "  {}", plain(&problem.to_string()))?;
    }
    Ok(())
}

#[derive(Serialize)]
struct Row<'a> {
    session_id: &'a SessionId,
    #[serde(flatten)]
    repair: Repair,
}

/// Mends sessions one after the other.
pub(super) async fn repair(
    store: &dyn Store,
    ids: &[SessionId],
    json: bool,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let mut rows = Vec::new();
    let mut is_done = true;
    for id in ids {
        match store.repair(id).await {
            Ok(repair) => {
                is_done &= repair.left.is_empty();
                if !json {
                    tell_repair(id, &repair, out)?;
                }
                rows.push(Row {
                    session_id: id,
                    repair,
                });
            }
            Err(error @ (StoreError::Busy { .. } | StoreError::NotFound(_))) => {
                is_done = false;
                writeln!(io::stderr(), "turnery: {error}")?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    if json {
        serde_json::to_writer_pretty(&mut *out, &rows)?;
        writeln!(out)?;
    }
    Ok(code(is_done))
}

fn tell_repair(id: &SessionId, repair: &Repair, out: &mut impl Write) -> io::Result<()> {
    let Some(backup) = &repair.backup else {
        return writeln!(out, "session {}: no damage was found", plain(id.as_str()));
    };
    writeln!(out, "session {}:", plain(id.as_str()))?;
    for change in &repair.changes {
        writeln!(out, "  {}", plain(change))?;
    }
    for left in &repair.left {
        writeln!(out, "  not mended: {}", plain(&left.to_string()))?;
    }
    writeln!(
        out,
        "  a copy of the database as it was, with the text of all sessions; delete it when you are \
         content with the result: {}",
        plain(&backup.display().to_string())
    )
}

/// Names the damage of a session on stderr. Returns whether there is any.
pub(super) async fn tell(store: &dyn Store, id: &SessionId) -> anyhow::Result<bool> {
    let damage = store.check(Some(id)).await?;
    let mut err = io::stderr().lock();
    for problem in &damage {
        writeln!(err, "turnery: {}", plain(&problem.to_string()))?;
    }
    if !damage.is_empty() {
        writeln!(
            err,
            "turnery: session {id} is damaged, and only what can be read is here; `turnery sessions \
             repair {id}` mends it"
        )?;
    }
    Ok(!damage.is_empty())
}

fn code(is_well: bool) -> ExitCode {
    ExitCode::from(if is_well { 0 } else { exit::ERROR })
}
