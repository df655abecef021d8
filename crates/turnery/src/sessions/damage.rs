//! `turnery sessions check` and `repair`: find damage in stored sessions and repair it.

use crate::{logs::print_message, run::exit, terminal_text::replace_control_chars};
use serde::Serialize;
use std::{
    io::{self, Write},
    process::ExitCode,
};
use turnery_engine::SessionId;
use turnery_store::{ArchivedFilter, Damage, ListQuery, RepairReport, Store, StoreError};

/// Prints the damage of one session or, without `id`, of all; repairs it instead if `mend` is set.
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
            // Repairing any session also repairs the database as a whole.
            ids.extend(any_session(store).await?);
        }
        return repair(store, &ids, json, out).await;
    }
    if json {
        serde_json::to_writer_pretty(&mut *out, &damage)?;
        writeln!(out)?;
    } else {
        write_damage(&damage, out)?;
        match damage.is_empty() {
            true => writeln!(out, "no damage was found")?,
            false => print_message(&format!(
                "{} problem(s) found; `turnery sessions repair ID` mends a session and keeps a copy of it as \
                 it is",
                damage.len()
            )),
        }
    }
    Ok(exit_code(damage.is_empty()))
}

async fn any_session(store: &dyn Store) -> Result<Option<SessionId>, StoreError> {
    let query = ListQuery {
        spawned: true,
        archived: ArchivedFilter::Include,
        limit: 1,
        ..ListQuery::default()
    };
    let page = store.list(query).await?;
    Ok(page.sessions.into_iter().next().map(|session| session.id))
}

/// Writes one line for each problem, grouped by session.
fn write_damage(damage: &[Damage], out: &mut impl Write) -> io::Result<()> {
    let mut last = None;
    for problem in damage {
        if last != Some(&problem.session_id) {
            match &problem.session_id {
                Some(id) => writeln!(out, "session {}:", replace_control_chars(id.as_str()))?,
                None => writeln!(out, "database:")?,
            }
        }
        last = Some(&problem.session_id);
        writeln!(out, "  {}", replace_control_chars(&problem.to_string()))?;
    }
    Ok(())
}

#[derive(Serialize)]
struct RepairRow<'a> {
    session_id: &'a SessionId,
    #[serde(flatten)]
    repair: RepairReport,
}

/// Repairs sessions one after the other.
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
                    write_repair(id, &repair, out)?;
                }
                rows.push(RepairRow {
                    session_id: id,
                    repair,
                });
            }
            Err(error @ (StoreError::Busy { .. } | StoreError::NotFound(_))) => {
                is_done = false;
                print_message(&error.to_string());
            }
            Err(error) => return Err(error.into()),
        }
    }
    if json {
        serde_json::to_writer_pretty(&mut *out, &rows)?;
        writeln!(out)?;
    }
    Ok(exit_code(is_done))
}

fn write_repair(id: &SessionId, repair: &RepairReport, out: &mut impl Write) -> io::Result<()> {
    let Some(backup) = &repair.backup else {
        return writeln!(
            out,
            "session {}: no damage was found",
            replace_control_chars(id.as_str())
        );
    };
    writeln!(out, "session {}:", replace_control_chars(id.as_str()))?;
    for change in &repair.changes {
        writeln!(out, "  {}", replace_control_chars(change))?;
    }
    for left in &repair.left {
        writeln!(
            out,
            "  not mended: {}",
            replace_control_chars(&left.to_string())
        )?;
    }
    writeln!(
        out,
        "  a copy of the database as it was, with the text of all sessions; delete it when you are \
         content with the result: {}",
        replace_control_chars(&backup.display().to_string())
    )
}

/// Prints the damage of a session to stderr. Returns true if there is any.
pub(super) async fn warn_of_damage(store: &dyn Store, id: &SessionId) -> anyhow::Result<bool> {
    let damage = store.check(Some(id)).await?;
    for problem in &damage {
        print_message(&problem.to_string());
    }
    if !damage.is_empty() {
        print_message(&format!(
            "session {id} is damaged, and only what can be read is here; `turnery sessions repair {id}` mends it"
        ));
    }
    Ok(!damage.is_empty())
}

fn exit_code(is_well: bool) -> ExitCode {
    ExitCode::from(if is_well { 0 } else { exit::ERROR })
}
