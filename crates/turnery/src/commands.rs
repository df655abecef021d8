//! Commands: Markdown files that become prompts behind a slash: those of the user, and those of the
//! projects (`.turnery/commands/*.md`). They are text for a prompt and grant nothing.

use crate::instructions::{inside, open};
use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};
use turnery_agent::Slash;

/// Where the commands of a project lie.
const FOLDER: &str = ".turnery/commands";
/// The longest file that is read. Unit: bytes.
const LONGEST: u64 = 64 << 10;
/// Files that are read of one folder.
const MOST: usize = 200;

/// All commands for a session in `roots`: those that turnery brings, then those of the user and of the
/// projects. Of two with the same name the one nearer to the work counts: the project's before the user's,
/// an earlier root's before a later one's.
pub(crate) fn all(user: Option<&Path>, roots: &[PathBuf]) -> Vec<Slash> {
    let mut all: Vec<Slash> = Vec::new();
    let projects = roots
        .iter()
        .flat_map(|root| of(&root.join(FOLDER), Some(root), "project"));
    let users = user.into_iter().flat_map(|folder| of(folder, None, "user"));
    for slash in projects.chain(users).chain([Slash::init()]) {
        if !all.iter().any(|known| known.name == slash.name) {
            all.push(slash);
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// The commands of a folder, by name. With a `top`, no file counts that leads out of it: what it says would
/// be sent to the model's provider.
fn of(folder: &Path, top: Option<&Path>, whose: &str) -> Vec<Slash> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "md"))
        .collect();
    paths.sort();
    if paths.len() > MOST {
        tracing::warn!(
            "{} holds more than {MOST} commands; the rest is left out",
            folder.display()
        );
        paths.truncate(MOST);
    }
    paths
        .into_iter()
        .filter_map(|path| {
            let name = path.file_stem()?.to_str()?;
            let file = match top {
                Some(top) => inside(&path, top)?,
                None => path.clone(),
            };
            let text = read(&file)?;
            let Some(mut slash) = Slash::parse(name, &text) else {
                tracing::warn!(
                    "{} is no command: it needs some text, and a name of letters, digits, - and _",
                    path.display()
                );
                return None;
            };
            slash.about = format!("{} ({whose})", slash.about);
            Some(slash)
        })
        .collect()
}

fn read(file: &Path) -> Option<String> {
    let mut text = String::new();
    let read = open(file).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
    match read {
        Ok(_) if text.len() as u64 <= LONGEST => Some(text),
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

    fn rows(all: &[Slash]) -> Vec<(&str, &str, String)> {
        let row = |it: &'_ Slash| it.fill("");
        all.iter()
            .filter(|it| it.name != "init")
            .map(|it| (it.name.as_str(), it.about.as_str(), row(it)))
            .collect()
    }

    #[test]
    fn the_nearer_command_counts() {
        let folder = tempfile::tempdir().unwrap();
        let user = folder.path().join("user");
        let roots = [folder.path().join("one"), folder.path().join("two")];
        write(&user, "a.md", "user a");
        write(&user, "b.md", "user b");
        write(
            &roots[0].join(FOLDER),
            "b.md",
            "---\ndescription: B\n---\none b",
        );
        write(&roots[1].join(FOLDER), "b.md", "two b");
        write(&roots[1].join(FOLDER), "c.md", "two c");
        let found = all(Some(&user), &roots);
        let expected = [
            ("a", "user a (user)", "user a".to_owned()),
            ("b", "B (project)", "one b".to_owned()),
            ("c", "two c (project)", "two c".to_owned()),
        ];
        assert_eq!(rows(&found), expected);
        assert!(found.contains(&Slash::init()));
    }

    #[test]
    fn what_is_no_command_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret.md");
        fs::write(&secret, "secret").unwrap();
        let root = folder.path().join("root");
        let commands = root.join(FOLDER);
        write(&commands, "good.md", "good");
        write(&commands, "note.txt", "no");
        write(&commands, "two words.md", "no");
        write(&commands, "empty.md", "\n");
        write(&commands, "long.md", &"x".repeat(65_537));
        fs::write(commands.join("bytes.md"), [0xff, 0xfe]).unwrap();
        fs::create_dir(commands.join("folder.md")).unwrap();
        std::os::unix::fs::symlink(&secret, commands.join("stolen.md")).unwrap();
        let found = all(None, &[root]);
        assert_eq!(
            rows(&found),
            [("good", "good (project)", "good".to_owned())]
        );
    }

    #[test]
    fn a_project_may_say_how_its_own_agents_file_is_written() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join(FOLDER), "init.md", "Write it in verse.");
        let found = all(None, &[folder.path().to_owned()]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].fill(""), "Write it in verse.");
    }
}
