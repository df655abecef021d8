//! Chooses the store of sessions: a SQLite file, memory, or a PostgreSQL database.

use super::{environment::EnvLookup, paths::absolute_without_dots};
use anyhow::anyhow;
use std::{
    convert::Infallible,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};
use turnery_store::{Durability, InlineRuntime, MemoryStore, SqliteStore, Store};
#[cfg(feature = "postgres")]
use turnery_store::{PostgresAddress, PostgresStore};

/// Variable that chooses the store.
pub(crate) const STORE_VARIABLE: &str = "TURNERY_STORE";

/// Forms of a setting.
const FORMS: &str =
    "write a path, sqlite:PATH, memory: or postgres://USER@HOST:PORT/DATABASE?schema=NAME";

/// Where sessions are stored, as it is set. May contain a password, so `Debug` hides it.
#[derive(Clone, PartialEq)]
pub(crate) struct StoreSetting(String);

impl fmt::Debug for StoreSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// Takes a setting of the command line as it is: the errors of the command line quote values, and it may have a password.
/// `find_store` reports a mistake.
pub(crate) fn unchecked_store(text: &str) -> Result<StoreSetting, Infallible> {
    Ok(StoreSetting(text.to_owned()))
}

/// Parses a setting. The error never contains the setting, which may have a password.
pub(crate) fn store(text: &str) -> Result<StoreSetting, String> {
    let setting = StoreSetting(text.to_owned());
    setting.parse(Path::new(""), &|_| None)?;
    Ok(setting)
}

/// Store of sessions.
#[derive(Clone, Debug)]
pub(crate) enum StoreLocation {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// The memory of this process.
    Memory,
    /// A schema of a PostgreSQL database.
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresAddress>),
}

impl StoreSetting {
    /// Parses the setting of the source `name`, like [`parse`](Self::parse).
    pub(crate) fn locate(
        &self,
        name: &str,
        folder: &Path,
        lookup: EnvLookup<'_>,
    ) -> anyhow::Result<StoreLocation> {
        let location = self.parse(folder, lookup);
        location.map_err(|error| anyhow!("{name}: {error}"))
    }

    /// Returns true if the setting is an address, which may have a password.
    pub(crate) fn is_address(&self) -> bool {
        self.0.contains("://")
    }

    /// Parses the setting. A relative path is one in `folder`; `lookup` finds a password that the address lacks.
    fn parse(&self, folder: &Path, lookup: EnvLookup<'_>) -> Result<StoreLocation, String> {
        let text = self.0.as_str();
        let path = match text.split_once(':') {
            Some(("postgres" | "postgresql", _)) => return parse_postgres(text, lookup),
            Some(("memory", "")) => return Ok(StoreLocation::Memory),
            Some(("sqlite", path)) => path,
            // One letter is a drive.
            Some((scheme, _)) if is_scheme(scheme) => {
                return Err(format!("there is no such kind of store; {FORMS}"));
            }
            Some(_) | None => text,
        };
        match path.is_empty() {
            true => Err(format!("the path is empty; {FORMS}")),
            false => Ok(StoreLocation::Sqlite(absolute_without_dots(
                folder.join(path),
            ))),
        }
    }
}

/// Returns true for a text that begins an address rather than a path.
fn is_scheme(text: &str) -> bool {
    text.len() > 1
        && text
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || "+-".contains(it))
}

#[cfg(feature = "postgres")]
fn parse_postgres(text: &str, lookup: EnvLookup<'_>) -> Result<StoreLocation, String> {
    let address = PostgresAddress::parse(text, lookup);
    let address = address.map_err(|error| format!("no address of a database: {error}"))?;
    Ok(StoreLocation::Postgres(Box::new(address)))
}

#[cfg(not(feature = "postgres"))]
fn parse_postgres(_: &str, _: EnvLookup<'_>) -> Result<StoreLocation, String> {
    Err("this turnery was built without PostgreSQL (feature `postgres`)".to_owned())
}

impl StoreLocation {
    /// Returns the files in which sessions are stored. Sandboxed commands must not read or write them.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Sqlite(path) => SqliteStore::files(path).collect(),
            Self::Memory => Vec::new(),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Vec::new(),
        }
    }

    /// Opens the store. `durability` is that of a SQLite file; with `inline`, its short jobs run on that runtime.
    pub(crate) fn open(
        &self,
        durability: Durability,
        inline: Option<InlineRuntime>,
    ) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(path) => {
                let store = SqliteStore::open(path.clone()).with_durability(durability);
                Arc::new(match inline {
                    Some(inline) => store.with_inline_runtime(inline),
                    None => store,
                })
            }
            Self::Memory => Arc::new(MemoryStore::new()),
            #[cfg(feature = "postgres")]
            Self::Postgres(address) => Arc::new(PostgresStore::open(address.as_ref().clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, String> {
        let location = StoreSetting(text.to_owned()).parse(Path::new("/conf"), &|_| None);
        location.map(|location| format!("{location:?}"))
    }

    #[test]
    fn setting_is_a_path_or_an_address() {
        for (text, expected) in [
            ("s.db", "Sqlite(\"/conf/s.db\")"),
            ("/var/s.db", "Sqlite(\"/var/s.db\")"),
            ("sqlite:s.db", "Sqlite(\"/conf/s.db\")"),
            ("memory:", "Memory"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn misspelt_scheme_is_refused_without_its_password() {
        for text in [
            "postgress://ann:secret@db/team",
            "postgrse://ann:secret@db/team",
            "mysql://ann:secret@db/team",
            "postgres://ann:secret@db:port/team",
            "sqlite:",
            "",
        ] {
            let error = store(text).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
            assert!(error.contains("postgres://"), "{error}");
        }
    }

    #[test]
    #[cfg(feature = "postgres")]
    fn password_is_not_in_debug_output() {
        let text = "postgres://ann:secret@db/team?schema=ann";
        let shown = format!("{:?} {:?}", store(text).unwrap(), parse(text).unwrap());
        assert!(
            shown.contains("postgres://ann@db:5432/team (schema ann)"),
            "{shown}"
        );
        assert!(!shown.contains("secret"), "{shown}");
    }
}
