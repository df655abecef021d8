//! Places: where turnery keeps its configuration and its sessions.

use super::{Keys, environment::Lookup};
use std::path::{Path, PathBuf};

/// Where things lie. `TURNERY_HOME` moves all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// The user's `config.toml`; it need not exist. `None` when the user has no home.
    pub(crate) config: Option<PathBuf>,
    /// The folder of the user's own commands; it need not exist.
    pub(crate) commands: Option<PathBuf>,
    /// The database of sessions. `None` when the user has no home.
    sessions: Option<PathBuf>,
    /// What `turnery login` keeps. `None` when the user has no home.
    keys: Option<PathBuf>,
}

impl Places {
    /// Find them. `config` is the file named on the command line.
    pub(crate) fn find(lookup: Lookup<'_>, config: Option<&Path>) -> Self {
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let home = lookup("TURNERY_HOME").map(|home| absolute(PathBuf::from(home)));
        let config = config.map(|file| absolute(file.to_owned()));
        match home {
            Some(home) => Self {
                config: config.or_else(|| Some(home.join("config.toml"))),
                commands: Some(home.join("commands")),
                sessions: Some(home.join("sessions.db")),
                keys: Some(home.join("keys.json")),
            },
            None => Self {
                config: config.or_else(|| {
                    dirs::config_dir().map(|folder| folder.join("turnery").join("config.toml"))
                }),
                commands: dirs::config_dir().map(|folder| folder.join("turnery").join("commands")),
                sessions: dirs::data_dir().map(|folder| folder.join("turnery").join("sessions.db")),
                keys: dirs::data_dir().map(|folder| folder.join("turnery").join("keys.json")),
            },
        }
    }

    /// The files of this installation: its configuration, keys and sessions. No session changes them unasked, and
    /// no confined command reads or writes them.
    pub(crate) fn own(&self) -> Vec<PathBuf> {
        let folder = |file: &Option<PathBuf>| Some(file.as_deref()?.parent()?.to_owned());
        let all = [
            self.config.clone(),
            folder(&self.commands),
            folder(&self.keys),
        ];
        let mut all: Vec<PathBuf> = all.into_iter().flatten().collect();
        all.dedup();
        all
    }

    /// What `turnery login` keeps.
    pub(crate) fn keys(&self) -> anyhow::Result<Keys> {
        let path = self.keys.clone().ok_or_else(|| {
            anyhow::anyhow!("there is no home folder to keep keys in; set TURNERY_HOME to a folder")
        })?;
        Ok(Keys::at(path))
    }

    /// The database of sessions.
    pub(crate) fn sessions(&self) -> anyhow::Result<&Path> {
        self.sessions.as_deref().ok_or_else(|| {
            anyhow::anyhow!(
                "there is no home folder to keep sessions in; set TURNERY_HOME to a folder"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turnery_home_moves_everything_and_a_named_file_wins() {
        let lookup = |name: &str| (name == "TURNERY_HOME").then(|| "/srv/turnery".to_owned());
        let places = Places::find(&lookup, None);
        assert_eq!(places.config, Some("/srv/turnery/config.toml".into()));
        assert_eq!(
            places.sessions().unwrap(),
            Path::new("/srv/turnery/sessions.db")
        );
        let places = Places::find(&lookup, Some(Path::new("/etc/turnery.toml")));
        assert_eq!(places.config, Some("/etc/turnery.toml".into()));
        let own = ["/etc/turnery.toml", "/srv/turnery"];
        assert_eq!(places.own(), own.map(PathBuf::from));
    }
}
