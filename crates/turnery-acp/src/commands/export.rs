//! `/export [PATH]`: writes everything stored of the session to a file, like `turnery sessions export`. Never
//! overwrites an existing file.

use crate::{
    commands::slash_command::{CommandCall, CommandOutcome, SlashCommand},
    server::rpc_error::RpcError,
};
use std::{
    fs::OpenOptions,
    io::{self, BufWriter, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};
use turnery_store::SessionDocument;

pub(super) const COMMAND: SlashCommand = SlashCommand {
    name: "export",
    description: "Write the session to a file",
    hint: Some("[PATH]"),
    needs_idle: false,
    run: |call| Box::pin(run(call)),
};

async fn run(call: CommandCall) -> Result<CommandOutcome, RpcError> {
    let document = call.session.export().await;
    let document = document.map_err(|error| RpcError::from_store(&error))?;
    let session = &document.session;
    let path = match call.args.is_empty() {
        true => session.cwd.join(format!("turnery-{}.json", session.id)),
        false => session.cwd.join(&call.args),
    };
    let to = path.clone();
    let written = tokio::task::spawn_blocking(move || write_document(&to, &document)).await;
    let path = path.display();
    Ok(CommandOutcome::Text(match written {
        Ok(Ok(())) => format!("The session was written to `{path}`."),
        Ok(Err(error)) if error.kind() == io::ErrorKind::AlreadyExists => {
            format!("`{path}` already exists and was not changed: name another file.")
        }
        Ok(Err(error)) => format!("`{path}` cannot be written: {error}."),
        Err(error) => format!("`{path}` was not written: {error}."),
    }))
}

/// Writes the document to a new file that only the owner can read: like the store, it holds the conversation.
fn write_document(path: &Path, document: &SessionDocument) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let mut file = BufWriter::new(file);
    serde_json::to_writer_pretty(&mut file, document)?;
    file.write_all(b"\n")?;
    file.flush()
}
