//! Locates turnery's configuration, keys and sessions.

use super::{KeyFile, environment::EnvLookup};
use std::path::{Component, Path, PathBuf};

/// Paths of turnery's files. `TURNERY_HOME` moves all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Paths {
    /// The user's `config.toml`; need not exist. `None` if the user has no home folder.
    pub(crate) config_file: Option<PathBuf>,
    /// Folder of the user's slash commands; need not exist.
    pub(crate) commands_folder: Option<PathBuf>,
    /// Session database. `None` if the user has no home folder.
    sessions: Option<PathBuf>,
    /// Key file of `turnery login`. `None` if the user has no home folder.
    key_file: Option<PathBuf>,
}

impl Paths {
    /// Resolves the paths. `config` is the file named on the command line.
    pub(crate) fn resolve(lookup: EnvLookup<'_>, config: Option<&Path>) -> Self {
        let home = lookup("TURNERY_HOME").map(PathBuf::from);
        let in_home = |usual: fn() -> Option<PathBuf>| {
            let usual = || usual().map(|folder| folder.join("turnery"));
            home.clone().or_else(usual).map(absolute_without_dots)
        };
        let config_folder = in_home(dirs::config_dir);
        let data_folder = in_home(dirs::data_dir);
        let file = |folder: &Option<PathBuf>, name| Some(folder.as_ref()?.join(name));
        let config = config.map(|file| absolute_without_dots(file.to_owned()));
        Self {
            config_file: config.or_else(|| file(&config_folder, "config.toml")),
            commands_folder: file(&config_folder, "commands"),
            sessions: file(&data_folder, "sessions.db"),
            key_file: file(&data_folder, "keys.json"),
        }
    }

    /// Returns the folders and files of this installation: configuration, keys and sessions. Sessions change
    /// them only after asking; sandboxed commands cannot read or write them.
    pub(crate) fn private_paths(&self) -> Vec<PathBuf> {
        let folder = |file: &Option<PathBuf>| Some(file.as_deref()?.parent()?.to_owned());
        let all = [
            self.config_file.clone(),
            folder(&self.commands_folder),
            folder(&self.key_file),
        ];
        let mut all: Vec<PathBuf> = all.into_iter().flatten().collect();
        all.dedup();
        all
    }

    /// Returns the key file of `turnery login`.
    pub(crate) fn key_file(&self) -> anyhow::Result<KeyFile> {
        let path = self.key_file.clone().ok_or_else(|| {
            anyhow::anyhow!("there is no home folder to keep keys in; set TURNERY_HOME to a folder")
        })?;
        Ok(KeyFile::new(path))
    }

    /// Returns the path of the session database, unless another store is set.
    pub(crate) fn sessions_database(&self) -> anyhow::Result<&Path> {
        self.sessions.as_deref().ok_or_else(|| {
            anyhow::anyhow!(
                "there is no home folder to keep sessions in; set TURNERY_HOME to a folder"
            )
        })
    }
}

/// Returns the absolute path without `..`, which the sandbox could not exclude by name. A link before `..` is followed.
pub(super) fn absolute_without_dots(path: PathBuf) -> PathBuf {
    let path = std::path::absolute(&path).unwrap_or(path);
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            plain = plain.canonicalize().unwrap_or(plain);
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_contain_no_dots() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::os::unix::fs::symlink("a/b", top.join("link")).unwrap();
        for (home, expected) in [
            ("a/..", ""),
            ("a/../x", "x"),
            ("a/b/../../x/y", "x/y"),
            ("absent/../x", "x"),
            ("link/..", "a"),
            ("link", "link"),
        ] {
            let named = top.join(home);
            let lookup = |name: &str| (name == "TURNERY_HOME").then(|| named.display().to_string());
            let paths = Paths::resolve(&lookup, Some(&named.join("c.toml")));
            let expected = top.join(expected);
            let key_file = paths.key_file.unwrap();
            assert_eq!(key_file, expected.join("keys.json"), "{home}");
            assert_eq!(paths.config_file, Some(expected.join("c.toml")), "{home}");
        }
    }

    #[test]
    fn turnery_home_moves_all_paths_but_named_config() {
        let lookup = |name: &str| (name == "TURNERY_HOME").then(|| "/srv/turnery".to_owned());
        let places = Paths::resolve(&lookup, None);
        assert_eq!(places.config_file, Some("/srv/turnery/config.toml".into()));
        assert_eq!(
            places.sessions_database().unwrap(),
            Path::new("/srv/turnery/sessions.db")
        );
        let places = Paths::resolve(&lookup, Some(Path::new("/etc/turnery.toml")));
        assert_eq!(places.config_file, Some("/etc/turnery.toml".into()));
        let own = ["/etc/turnery.toml", "/srv/turnery"];
        assert_eq!(places.private_paths(), own.map(PathBuf::from));
    }
}
