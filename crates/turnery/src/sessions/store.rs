//! `turnery store`: describes, checks, copies and shrinks the store of sessions.

use super::damage;
use crate::{
    app::App,
    args::{GlobalOptions, StoreSubcommand},
    config::{Config, environment},
    logs::print_message,
    run::exit,
    runtime::current_thread_runtime,
    terminal_text::{format_bytes, replace_control_chars},
};
use serde::Serialize;
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};
use turnery_store::{
    Durability, Store, StoreDescription,
    migrate::{CopyError, CopyOutcome, copy_session, sessions_to_copy},
};

/// Runs `turnery store`.
pub(crate) fn run(global: &GlobalOptions, what: StoreSubcommand) -> anyhow::Result<ExitCode> {
    let app = App::load(global, Config::default());
    let store = app.open_store(None)?;
    let store = &*store;
    let runtime = current_thread_runtime()?;
    let mut out = io::stdout().lock();
    runtime.block_on(async {
        match what {
            StoreSubcommand::Info { json } => print_info(store, json, &mut out).await,
            StoreSubcommand::Check { json } => {
                damage::check(store, None, json, false, &mut out).await
            }
            StoreSubcommand::Vacuum => vacuum(store, &mut out).await,
            StoreSubcommand::Migrate { to } => {
                let lookup = &environment::process_variable;
                let target = to
                    .locate("--to", Path::new(""), lookup)?
                    .open(Durability::Process, None);
                require_other(store, &*target).await?;
                migrate(store, &*target, &mut out).await
            }
        }
    })
}

/// Output of `store info --json`.
#[derive(Serialize)]
struct InfoJson<'a> {
    kind: &'a str,
    location: &'a str,
    bytes: Option<u64>,
    free_bytes: u64,
    sessions: u64,
    format: Option<u64>,
}

async fn print_info(
    store: &dyn Store,
    json: bool,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let StoreDescription {
        kind,
        location,
        bytes,
        free_bytes,
        sessions,
        format,
    } = store.describe().await?;
    if json {
        let info = InfoJson {
            kind,
            location: &location,
            bytes,
            free_bytes,
            sessions,
            format,
        };
        serde_json::to_writer_pretty(&mut *out, &info)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(
        out,
        "store     {kind}, {}",
        replace_control_chars(&location)
    )?;
    if let Some(bytes) = bytes {
        writeln!(
            out,
            "size      {}, of which {} is free",
            format_bytes(bytes),
            format_bytes(free_bytes)
        )?;
    }
    writeln!(
        out,
        "sessions  {sessions}, with archived ones and those of sub-agents"
    )?;
    if let Some(format) = format {
        writeln!(out, "format    version {format}")?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn vacuum(store: &dyn Store, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let space = store.vacuum().await?;
    writeln!(
        out,
        "{} given back to the disk; the store takes {}",
        format_bytes(space.bytes_before.saturating_sub(space.bytes_after)),
        format_bytes(space.bytes_after)
    )?;
    if space.is_incomplete {
        print_message("more space is given back once no other program uses the store");
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails if both stores are the same.
async fn require_other(one: &dyn Store, other: &dyn Store) -> anyhow::Result<()> {
    // Opening a store creates its file.
    let (one, other) = (one.describe().await?, other.describe().await?);
    let real = |location: &str| -> PathBuf {
        let path = Path::new(location);
        path.canonicalize().unwrap_or_else(|_| path.to_owned())
    };
    anyhow::ensure!(
        one.kind != other.kind || real(&one.location) != real(&other.location),
        "{} is the store that the sessions are in; give another one",
        other.location
    );
    Ok(())
}

async fn migrate(
    from: &dyn Store,
    to: &dyn Store,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let (mut copied, mut present, mut failed) = (0, 0, 0);
    for id in sessions_to_copy(from).await? {
        match copy_session(from, to, &id).await {
            Ok(CopyOutcome::Copied) => copied += 1,
            Ok(CopyOutcome::Present) => present += 1,
            // Of one session: the others can still be copied.
            Err(
                error @ (CopyError::Damaged { .. }
                | CopyError::Diverged(_)
                | CopyError::Undelivered(_)
                | CopyError::PromptWaits(_)
                | CopyError::Differs { .. }
                | CopyError::Store(
                    turnery_store::StoreError::Busy { .. } | turnery_store::StoreError::NotFound(_),
                )),
            ) => {
                failed += 1;
                print_message(&error.to_string());
            }
            Err(error @ CopyError::Store(_)) => return Err(error.into()),
        }
    }
    writeln!(
        out,
        "{copied} session(s) copied and compared, {present} were there already, {failed} left out"
    )?;
    Ok(ExitCode::from(if failed == 0 { 0 } else { exit::ERROR }))
}
