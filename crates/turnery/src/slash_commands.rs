//! Loads slash commands from Markdown files of the user and of the projects (`.turnery/commands/*.md`).
//! Commands are text for a prompt and grant no permissions.

use crate::instructions::{open_no_follow, resolve_inside};
use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};
use turnery_agent::CustomCommand;

/// Folder of a project's commands.
const PROJECT_FOLDER: &str = ".turnery/commands";
/// Largest command file that is read. Unit: bytes.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// Maximum number of files that are read from one folder.
const MAX_FILES_PER_FOLDER: usize = 200;

/// Returns all commands for a session in `roots`, sorted by name. Of commands with the same name, one of a
/// project takes precedence over one of the user, that over a built-in one, and one of an earlier root over
/// one of a later root.
pub(crate) fn load_commands(user: Option<&Path>, roots: &[PathBuf]) -> Vec<CustomCommand> {
    let mut all: Vec<CustomCommand> = Vec::new();
    let projects = roots
        .iter()
        .flat_map(|root| load_folder(&root.join(PROJECT_FOLDER), Some(root), "project"));
    let users = user
        .into_iter()
        .flat_map(|folder| load_folder(folder, None, "user"));
    for slash in projects.chain(users).chain([CustomCommand::init()]) {
        if !all.iter().any(|known| known.name == slash.name) {
            all.push(slash);
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Returns the commands of a folder, sorted by name. With a `top`, files that resolve to a path outside are
/// skipped, since their contents would be sent to the model's provider.
fn load_folder(folder: &Path, top: Option<&Path>, whose: &str) -> Vec<CustomCommand> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "md"))
        .collect();
    paths.sort();
    if paths.len() > MAX_FILES_PER_FOLDER {
        tracing::warn!(
            "{} holds more than {MAX_FILES_PER_FOLDER} commands; the rest is left out",
            folder.display()
        );
        paths.truncate(MAX_FILES_PER_FOLDER);
    }
    paths
        .into_iter()
        .filter_map(|path| {
            let name = path.file_stem()?.to_str()?;
            let file = match top {
                Some(top) => resolve_inside(&path, top)?,
                None => path.clone(),
            };
            let text = read_command(&file)?;
            let Some(mut slash) = CustomCommand::parse(name, &text) else {
                tracing::warn!(
                    "{} is no command: it needs some text, and a name of letters, digits, - and _",
                    path.display()
                );
                return None;
            };
            slash.description = format!("{} ({whose})", slash.description);
            Some(slash)
        })
        .collect()
}

fn read_command(file: &Path) -> Option<String> {
    let mut text = String::new();
    let read = open_no_follow(file)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text));
    match read {
        Ok(_) if text.len() as u64 <= MAX_FILE_BYTES => Some(text),
        Ok(_) => {
            tracing::warn!("{} is longer than 64 KiB; left out", file.display());
            None
        }
        Err(error) => {
            tracing::warn!("{} cannot be read: {error}", file.display());
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, text: &str) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(name), text).unwrap();
    }

    fn rows(all: &[CustomCommand]) -> Vec<(&str, &str, String)> {
        let row = |it: &'_ CustomCommand| it.expand("");
        all.iter()
            .filter(|it| it.name != "init")
            .map(|it| (it.name.as_str(), it.description.as_str(), row(it)))
            .collect()
    }

    #[test]
    fn project_command_shadows_user_command() {
        let folder = tempfile::tempdir().unwrap();
        let user = folder.path().join("user");
        let roots = [folder.path().join("one"), folder.path().join("two")];
        write(&user, "a.md", "user a");
        write(&user, "b.md", "user b");
        write(
            &roots[0].join(PROJECT_FOLDER),
            "b.md",
            "---\ndescription: B\n---\none b",
        );
        write(&roots[1].join(PROJECT_FOLDER), "b.md", "two b");
        write(&roots[1].join(PROJECT_FOLDER), "c.md", "two c");
        let found = load_commands(Some(&user), &roots);
        let expected = [
            ("a", "user a (user)", "user a".to_owned()),
            ("b", "B (project)", "one b".to_owned()),
            ("c", "two c (project)", "two c".to_owned()),
        ];
        assert_eq!(rows(&found), expected);
        assert!(found.contains(&CustomCommand::init()));
    }

    #[test]
    fn invalid_command_files_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret.md");
        fs::write(&secret, "secret").unwrap();
        let root = folder.path().join("root");
        let commands = root.join(PROJECT_FOLDER);
        write(&commands, "good.md", "good");
        write(&commands, "note.txt", "no");
        write(&commands, "two words.md", "no");
        write(&commands, "empty.md", "\n");
        write(&commands, "long.md", &"x".repeat(65_537));
        fs::write(commands.join("bytes.md"), [0xff, 0xfe]).unwrap();
        fs::create_dir(commands.join("folder.md")).unwrap();
        std::os::unix::fs::symlink(&secret, commands.join("stolen.md")).unwrap();
        let found = load_commands(None, &[root]);
        assert_eq!(
            rows(&found),
            [("good", "good (project)", "good".to_owned())]
        );
    }

    #[test]
    fn project_overrides_init_command() {
        let folder = tempfile::tempdir().unwrap();
        write(
            &folder.path().join(PROJECT_FOLDER),
            "init.md",
            "Write it in verse.",
        );
        let found = load_commands(None, &[folder.path().to_owned()]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].expand(""), "Write it in verse.");
    }
}
