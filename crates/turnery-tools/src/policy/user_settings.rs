//! Finds the files that the user's own settings lead to, such as those of a dotfiles repository: git, shells and
//! editors read them under another name, so their own names do not give them away.

use super::guarded_paths;
use std::{
    env, fs,
    io::Read as _,
    path::{Path, PathBuf},
};

/// Maximum number of git configuration files that are followed.
const MAX_CONFIG_FILES: usize = 32;
/// Maximum size of a git configuration file. Unit: bytes.
const MAX_CONFIG_BYTES: u64 = 1 << 20;
/// Keys of git, in lower case, whose value is a folder of programs or of files that every new repository gets.
const FOLDER_KEYS: &[&str] = &["hookspath", "templatedir"];

/// Home folder of a user and the places of git's configuration.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UserSettings {
    home: PathBuf,
    git_configs: Vec<PathBuf>,
}

impl UserSettings {
    /// Returns the settings that this process's environment names; `None` without a home folder.
    pub(super) fn from_env() -> Option<Self> {
        let home = env::home_dir()?;
        let mut settings = Self::new(home.clone());
        let config_home = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let git_folder = config_home
            .unwrap_or_else(|| home.join(".config"))
            .join("git");
        let names = ["attributes", "config", "ignore"];
        let named = env::var_os("GIT_CONFIG_GLOBAL").map(PathBuf::from);
        settings
            .git_configs
            .extend(names.map(|name| git_folder.join(name)));
        settings.git_configs.extend(named);
        settings.git_configs.push("/etc/gitconfig".into());
        Some(settings)
    }

    /// Returns the settings in a home folder.
    pub(super) fn new(home: PathBuf) -> Self {
        Self {
            git_configs: vec![home.join(".gitconfig"), home.join(".config/git/config")],
            home,
        }
    }

    /// Returns true if a guarded name in the home folder leads to `path`, or if git's configuration includes the file
    /// or names it. `path` has its links resolved.
    pub(super) fn lead_to(&self, path: &Path) -> bool {
        let is_above = |target: PathBuf| target.canonicalize().is_ok_and(|it| path.starts_with(it));
        guarded_paths::guarded_names().any(|name| is_above(self.home.join(name)))
            || self.git_configuration_names(path)
    }

    fn git_configuration_names(&self, path: &Path) -> bool {
        let mut files = self.git_configs.clone();
        let mut at = 0;
        while let Some(file) = files.get(at).filter(|_| at < MAX_CONFIG_FILES).cloned() {
            at += 1;
            let Ok(file) = file.canonicalize() else {
                continue;
            };
            if path == file {
                return true;
            }
            for (key, value) in entries(&file) {
                let folder = file.parent().unwrap_or(Path::new("/"));
                let mut targets = words(&value).map(|word| self.expand(folder, word));
                if key == "path" {
                    files.extend(targets.next());
                    continue;
                }
                let is_named = |target: PathBuf| {
                    let target = target.canonicalize().unwrap_or_default();
                    match FOLDER_KEYS.contains(&key.as_str()) {
                        true => path.starts_with(&target),
                        false => path == target,
                    }
                };
                if targets.any(is_named) {
                    return true;
                }
            }
        }
        false
    }

    fn expand(&self, folder: &Path, word: &str) -> PathBuf {
        match word.strip_prefix("~/") {
            Some(below) => self.home.join(below),
            None => folder.join(word),
        }
    }
}

/// Returns the keys, in lower case, and values of a git configuration, section names left out.
fn entries(file: &Path) -> Vec<(String, String)> {
    let mut text = Vec::new();
    let read =
        fs::File::open(file).and_then(|file| file.take(MAX_CONFIG_BYTES).read_to_end(&mut text));
    if read.is_err() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&text).replace("\\\n", " ");
    let entry = |line: &str| {
        // The first key may follow the section's name in the same line.
        let line = line.rsplit(']').next().unwrap_or(line);
        let (key, value) = line.split_once('=')?;
        Some((key.trim().to_lowercase(), value.trim().to_owned()))
    };
    text.lines().filter_map(entry).collect()
}

/// Returns the whole value without quotes, and each of its words, because a value may be a command line.
fn words(value: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || "'\"!;&|()<>`$".contains(c);
    let whole = value.trim_matches('"');
    std::iter::once(whole)
        .chain(value.split(ends))
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A home folder with a repository of settings in it.
    fn home() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("dotfiles/hooks")).unwrap();
        for file in [
            "gitconfig",
            "more",
            "conv",
            "hooks/pre-push",
            "zshrc",
            "notes",
        ] {
            fs::write(home.join("dotfiles").join(file), "").unwrap();
        }
        (folder, home)
    }

    #[test]
    fn target_of_linked_settings_is_guarded() {
        let (_folder, home) = home();
        symlink("dotfiles/gitconfig", home.join(".gitconfig")).unwrap();
        symlink("dotfiles/zshrc", home.join(".zshrc")).unwrap();
        let settings = UserSettings::new(home.clone());
        for (file, guarded) in [("gitconfig", true), ("zshrc", true), ("notes", false)] {
            let path = home.join("dotfiles").join(file);
            assert_eq!(settings.lead_to(&path), guarded, "{file}");
        }
    }

    #[test]
    fn linked_settings_folder_guards_everything_below() {
        let (_folder, home) = home();
        fs::create_dir(home.join(".config")).unwrap();
        symlink("../dotfiles", home.join(".config/git")).unwrap();
        let settings = UserSettings::new(home.clone());
        assert!(settings.lead_to(&home.join("dotfiles/new")));
    }

    #[test]
    fn files_named_by_git_configuration_are_guarded() {
        let (_folder, home) = home();
        fs::write(
            home.join(".gitconfig"),
            "[include]\n\tpath = dotfiles/more\n[safe]\n\tdirectory = ~/dotfiles\n",
        )
        .unwrap();
        fs::write(
            home.join("dotfiles/more"),
            "[diff \"c\"] textconv = \"~/dotfiles/conv -x\"\n[core]\nhooksPath = ~/dotfiles/hooks\n",
        )
        .unwrap();
        let settings = UserSettings::new(home.clone());
        let names = [
            "more",
            "conv",
            "hooks/pre-push",
            "hooks/new",
            "notes",
            "new",
        ];
        let guarded = names.map(|name| settings.lead_to(&home.join("dotfiles").join(name)));
        assert_eq!(guarded, [true, true, true, true, false, false]);
    }
}
