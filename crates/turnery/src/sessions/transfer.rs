//! `turnery sessions export` and `import`: write a session as one JSON document and read it back, or write it as
//! Markdown.

use super::markdown;
use crate::{args::ExportFormat, run::exit};
use anyhow::Context;
use std::{
    fs,
    io::{self, BufWriter, Read, Write},
    path::Path,
    process::ExitCode,
};
use turnery_engine::SessionId;
use turnery_store::{SessionDocument, Store, StoreError, export as transfer};

pub(super) async fn export(
    store: &dyn Store,
    id: &SessionId,
    file: Option<&Path>,
    format: ExportFormat,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let document = transfer::export_session(store, id).await?;
    match file {
        None => write_document(&document, format, out)?,
        Some(file) => {
            let written = create_private_file(file)
                .and_then(|made| write_document(&document, format, &mut BufWriter::new(made)));
            written.with_context(|| format!("{} cannot be written", file.display()))?;
        }
    }
    // The export lacks unreadable parts, so the user must be warned.
    let is_damaged = super::damage::warn_of_damage(store, id).await?;
    Ok(ExitCode::from(if is_damaged { exit::ERROR } else { 0 }))
}

/// Creates the file with access for its owner only, like the store: it holds the whole conversation.
fn create_private_file(file: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)
}

fn write_document(
    document: &SessionDocument,
    format: ExportFormat,
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        ExportFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, document)?;
            writeln!(out)?;
        }
        ExportFormat::Markdown => markdown::write_markdown(document, out)?,
    }
    out.flush()
}

pub(super) async fn import(
    store: &dyn Store,
    file: &Path,
    new: bool,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let read = match file == Path::new("-") {
        true => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map(|_| text)
        }
        false => fs::read_to_string(file),
    };
    let at = || format!("{} cannot be imported", file.display());
    let mut document = SessionDocument::parse(&read.with_context(at)?).with_context(at)?;
    if new {
        let id = SessionId::from(turnery_store::new_uuid().to_string());
        document = document.with_session_id(&id).with_context(at)?;
    }
    let made = match transfer::import_session(store, document).await {
        Err(error @ turnery_store::ImportError::Store(StoreError::Exists(_))) => {
            return Err(error).context("--new imports it under a new id");
        }
        made => made.with_context(at)?,
    };
    writeln!(out, "{}", made.id)?;
    Ok(ExitCode::SUCCESS)
}
