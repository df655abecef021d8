//! `/export [PATH]`: writes all that is stored of the session to a file, as `turnery sessions export`
//! does. An existing file is left alone.

use super::{Command, Reply, Typed};
use crate::fault::Fault;
use std::{
    fs::OpenOptions,
    io::{self, BufWriter, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};
use turnery_store::Document;

pub(super) const COMMAND: Command = Command {
    name: "export",
    about: "Write the session to a file",
    hint: Some("[PATH]"),
    needs_idle: false,
    run: |typed| Box::pin(run(typed)),
};

async fn run(typed: Typed) -> Result<Reply, Fault> {
    let document = typed.session.export().await;
    let document = document.map_err(|error| Fault::store(&error))?;
    let session = &document.session;
    let path = match typed.args.is_empty() {
        true => session.cwd.join(format!("turnery-{}.json", session.id)),
        false => session.cwd.join(&typed.args),
    };
    let to = path.clone();
    let written = tokio::task::spawn_blocking(move || write(&to, &document)).await;
    let path = path.display();
    Ok(Reply::Said(match written {
        Ok(Ok(())) => format!("The session is in `{path}`."),
        Ok(Err(error)) if error.kind() == io::ErrorKind::AlreadyExists => {
            format!("`{path}` exists already, and is left as it is: name another file.")
        }
        Ok(Err(error)) => format!("`{path}` cannot be written: {error}."),
        Err(error) => format!("`{path}` was not written: {error}."),
    }))
}

/// The owner's alone, as the store is: it holds all that was said.
fn write(path: &Path, document: &Document) -> io::Result<()> {
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
