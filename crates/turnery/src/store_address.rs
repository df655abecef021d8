//! Opens stores by their address.

use anyhow::{Context as _, bail, ensure};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use turnery_store::{SqliteStore, Store};

/// Start of the address of a SQLite file.
const SQLITE_PREFIX: &str = "sqlite:";

/// Opens the store at an address: the path of a SQLite file, which is created if there is none.
pub(crate) fn open(address: &str) -> anyhow::Result<Arc<dyn Store>> {
    let path = match address.strip_prefix(SQLITE_PREFIX) {
        Some(path) => path,
        None => {
            if let Some((scheme, _)) = address.split_once("://") {
                bail!(
                    "this turnery cannot open a store at {scheme}://; give the path of a SQLite file"
                );
            }
            address
        }
    };
    ensure!(!path.is_empty(), "the address of a store must not be empty");
    let path = std::path::absolute(path).with_context(|| format!("{path} is no path"))?;
    Ok(Arc::new(SqliteStore::open(path)))
}

/// Fails if both stores are the same.
pub(crate) async fn require_other(one: &dyn Store, other: &dyn Store) -> anyhow::Result<()> {
    // Opening a store creates its file.
    let (one, other) = (one.describe().await?, other.describe().await?);
    let real = |location: &str| -> PathBuf {
        let path = Path::new(location);
        path.canonicalize().unwrap_or_else(|_| path.to_owned())
    };
    ensure!(
        one.kind != other.kind || real(&one.location) != real(&other.location),
        "{} is the store that the sessions are in; give another address",
        other.location
    );
    Ok(())
}
