//! Finds where sessions are stored.

use crate::config::{
    Config, Paths, StoreLocation, environment::EnvLookup, store_location::STORE_VARIABLE,
};
use anyhow::anyhow;
use std::path::Path;

/// Returns the store that the first of the flags, the environment and the user's file sets, and otherwise the SQLite
/// file of turnery's folder. Fails if one of them cannot be read: it might set another store.
pub(crate) fn find_store(
    flags: &Config,
    environment: &Result<Config, String>,
    user: &Result<Config, String>,
    paths: &Paths,
    lookup: EnvLookup<'_>,
) -> anyhow::Result<StoreLocation> {
    let here = Path::new("");
    let config_file = paths.config_file.as_deref();
    let beside = config_file.and_then(Path::parent).unwrap_or(here);
    let sources = [
        ("--store", Ok(flags), here),
        (STORE_VARIABLE, environment.as_ref(), here),
        ("store", user.as_ref(), beside),
    ];
    for (name, source, folder) in sources {
        let source = source.map_err(|error| anyhow!("{error}"))?;
        if let Some(setting) = &source.store {
            return setting.locate(name, folder, lookup);
        }
    }
    Ok(StoreLocation::Sqlite(paths.sessions_database()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::store_location::store;

    /// Store that is found with a flag, a variable and a file.
    fn find(
        flag: &str,
        environment: Result<Config, String>,
        file: Result<Config, String>,
    ) -> Result<String, String> {
        let lookup = |name: &str| (name == "TURNERY_HOME").then(|| "/conf".to_owned());
        let paths = Paths::resolve(&lookup, None);
        let found = find_store(&config(flag), &environment, &file, &paths, &lookup);
        match found {
            Ok(location) => Ok(format!("{location:?}")),
            Err(error) => Err(error.to_string()),
        }
    }

    fn config(setting: &str) -> Config {
        Config {
            store: (!setting.is_empty()).then(|| store(setting).unwrap()),
            ..Config::default()
        }
    }

    #[test]
    fn flag_wins_over_environment_and_file() {
        for (flag, environment, file, expected) in [
            ("/flag.db", "/env.db", "file.db", "/flag.db"),
            ("", "/env.db", "file.db", "/env.db"),
            ("", "", "file.db", "/conf/file.db"),
            ("", "", "/var/../file.db", "/file.db"),
            ("", "", "", "/conf/sessions.db"),
        ] {
            let found = find(flag, Ok(config(environment)), Ok(config(file)));
            assert_eq!(found, Ok(format!("Sqlite({expected:?})")));
        }
    }

    #[test]
    fn unreadable_source_is_not_passed_over() {
        let bad = || Err("config.toml:1: nonsense".to_owned());
        let refused = Err("config.toml:1: nonsense".to_owned());
        assert_eq!(find("", Ok(config("")), bad()), refused);
        assert_eq!(find("", bad(), Ok(config("/file.db"))), refused);
        // What takes precedence was read.
        let found = Ok("Sqlite(\"/flag.db\")".to_owned());
        assert_eq!(find("/flag.db", bad(), bad()), found);
    }
}
