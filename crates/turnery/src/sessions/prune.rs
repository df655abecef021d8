//! `turnery sessions prune`: deletes old sessions and gives their space back.

use super::list_copies;
use crate::{
    app::resolve_cwd,
    args::PruneArgs,
    login::terminal_user::TerminalUser,
    logs::print_message,
    session_address::ShortIds,
    terminal_text::{first_line, format_bytes, format_timestamp},
};
use anyhow::{Context as _, bail};
use std::{collections::HashMap, io::Write, path::PathBuf, process::ExitCode};
use turnery_store::{ArchivedFilter, ListQuery, SessionInfo, Store, StoreError};

/// Longest title of a session to delete. Unit: characters.
const TITLE_WIDTH: usize = 60;

pub(super) async fn prune(
    store: &dyn Store,
    args: PruneArgs,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let sessions = select(store, &args).await?;
    if sessions.is_empty() {
        writeln!(out, "there is nothing to delete")?;
        return Ok(ExitCode::SUCCESS);
    }
    let short_ids = ShortIds::read(store).await?;
    let mut bytes = 0;
    for session in &sessions {
        let size = match store.session_size(&session.id).await {
            // Deleted meanwhile.
            Err(StoreError::NotFound(_)) => continue,
            size => size?,
        };
        bytes += size;
        let title = session.title.as_deref().unwrap_or("(nothing asked yet)");
        writeln!(
            out,
            "{}  {}  {:>9}  {}",
            short_ids.shorten(&session.id),
            format_timestamp(session.updated_at),
            format_bytes(size),
            first_line(title, TITLE_WIDTH)
        )?;
    }
    let what = format!(
        "{} session(s) with about {}",
        sessions.len(),
        format_bytes(bytes)
    );
    if args.dry_run {
        writeln!(out, "{what} would be deleted, except those in use")?;
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes {
        let Some(mut user) = TerminalUser::at_terminal() else {
            bail!("nobody can be asked without a terminal; add --yes to delete {what}");
        };
        out.flush()?;
        if !user.confirm(&format!("Delete {what}?"))? {
            writeln!(out, "nothing was deleted")?;
            return Ok(ExitCode::SUCCESS);
        }
    }
    delete(store, &sessions, out).await?;
    Ok(ExitCode::SUCCESS)
}

async fn delete(
    store: &dyn Store,
    sessions: &[SessionInfo],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let mut count = 0;
    for session in sessions {
        match store.delete(&session.id).await {
            Ok(existed) => count += u32::from(existed),
            Err(error @ StoreError::Busy { .. }) => print_message(&format!("kept: {error}")),
            Err(error) => return Err(error.into()),
        }
    }
    let space = store.vacuum().await?;
    let freed = space.bytes_before.saturating_sub(space.bytes_after);
    writeln!(
        out,
        "deleted {count} session(s); {} given back to the disk",
        format_bytes(freed)
    )?;
    if space.is_incomplete {
        print_message("more space is given back once no other program uses the store");
    }
    list_copies(store).await?;
    Ok(())
}

/// Returns the sessions to delete, the newest first. Sessions of sub-agents go with their parents.
async fn select(store: &dyn Store, args: &PruneArgs) -> anyhow::Result<Vec<SessionInfo>> {
    let before = match args.older_than {
        Some(age) => Some(
            turnery_store::now()
                .checked_sub_signed(age.0)
                .context("--older-than is before all time")?,
        ),
        None => None,
    };
    let mut query = ListQuery {
        folder: match args.all {
            true => None,
            false => Some(resolve_cwd(None)?),
        },
        archived: match args.archived {
            true => ArchivedFilter::Include,
            false => ArchivedFilter::Exclude,
        },
        ..ListQuery::default()
    };
    let mut kept: HashMap<PathBuf, usize> = HashMap::new();
    let mut found = Vec::new();
    loop {
        let page = store.list(query.clone()).await?;
        for session in page.sessions {
            let is_old = before.is_none_or(|before| session.updated_at < before);
            let is_beyond = args.keep.is_none_or(|keep| {
                let kept = kept.entry(session.folder.clone()).or_default();
                *kept += 1;
                *kept > keep
            });
            if is_old && is_beyond {
                found.push(session);
            }
        }
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => return Ok(found),
        }
    }
}
