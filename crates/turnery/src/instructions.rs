//! Instructions: the system prompt. Who the agent is, where it works, then the AGENTS.md files.
//!
//! It holds nothing that changes from prompt to prompt, such as the date: providers cache it.

use rustix::fs::OFlags;
use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

/// At most so much of one AGENTS.md is read. Unit: bytes.
pub(crate) const LONGEST: usize = 64 << 10;

const NAME: &str = "AGENTS.md";

/// The system prompt for a session in `roots`, the working directory first.
pub(crate) fn system(roots: &[PathBuf]) -> Arc<str> {
    let mut text = include_str!("instructions.md").to_owned();
    let cwd = roots.first().map_or(Path::new("."), PathBuf::as_path);
    let _ = write!(
        text,
        "\nWorking directory: {}\nOperating system: {}\n",
        cwd.display(),
        std::env::consts::OS
    );
    for root in roots.iter().skip(1) {
        let _ = writeln!(text, "Further folder: {}", root.display());
    }
    // The last root first: what comes later wins, and earlier roots win over later ones (DIR-6).
    let mut seen = Vec::new();
    for root in roots.iter().rev() {
        for file in files(root) {
            if !seen.contains(&file) {
                append(&mut text, &file);
                seen.push(file);
            }
        }
    }
    text.into()
}

/// The AGENTS.md files for a root: from the top of its repository down to the root, so that the nearest comes last.
fn files(root: &Path) -> Vec<PathBuf> {
    let is_top =
        |folder: &&Path| folder.join(".git").exists() && (*folder == root || !is_shared(folder));
    let top = root.ancestors().find(is_top).unwrap_or(root);
    let mut files: Vec<PathBuf> = root
        .ancestors()
        .take_while(|folder| folder.starts_with(top))
        .filter_map(|folder| inside(&folder.join(NAME), top))
        .collect();
    files.reverse();
    files
}

/// Whether others put files there too, or any command does: a folder for temporary files.
fn is_shared(folder: &Path) -> bool {
    let is_open = |found: fs::Metadata| found.mode() & 0o002 != 0;
    folder == std::env::temp_dir() || folder.metadata().is_ok_and(is_open)
}

/// Where the file really lies, if it is a file and inside `top`. A link out of the project is not
/// followed: what it points to would be sent to the model's provider.
pub(crate) fn inside(file: &Path, top: &Path) -> Option<PathBuf> {
    let file = file.canonicalize().ok()?;
    if !file.starts_with(top.canonicalize().ok()?) {
        tracing::warn!("{} leads out of its project; left out", file.display());
        return None;
    }
    // A link may lead to a key in a home folder that is a repository.
    let is_text = file
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("md"));
    (is_text && file.is_file()).then_some(file)
}

/// Opens a file whose links were followed before: one that is there by now is not, and a pipe is not waited for.
pub(crate) fn open(file: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = File::options();
    options.read(true).custom_flags(flags.bits().cast_signed());
    options.open(file)
}

fn append(text: &mut String, file: &Path) {
    let mut bytes = Vec::new();
    let read = open(file).and_then(|file| file.take(LONGEST as u64 + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        tracing::warn!("{} cannot be read: {error}", file.display());
        return;
    }
    let cut = bytes.len() > LONGEST;
    bytes.truncate(LONGEST);
    let content = String::from_utf8_lossy(&bytes);
    let content = match cut {
        true => content.trim_end_matches('\u{fffd}'),
        false => &content,
    };
    let _ = write!(
        text,
        "\nInstructions of the project, from {} (what comes later is nearer to the work and wins):\n\n{}\n",
        file.display(),
        content.trim()
    );
    if cut {
        let _ = writeln!(
            text,
            "\n(The file is longer than 64 KiB; the rest was left out.)"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(system: &str, text: &str) -> usize {
        system
            .find(text)
            .unwrap_or_else(|| panic!("{text:?} is missing"))
    }

    #[test]
    fn the_agents_own_part_is_short() {
        assert!(include_str!("instructions.md").len() < 2048);
    }

    // proves: DIR-6
    #[test]
    fn the_nearest_agents_file_comes_last_and_nothing_above_the_repository_counts() {
        let home = tempfile::tempdir().unwrap();
        let repository = home.path().join("repository");
        let inner = repository.join("crates/inner");
        let other = home.path().join("other");
        fs::create_dir_all(repository.join(".git")).unwrap();
        fs::create_dir_all(&inner).unwrap();
        fs::create_dir_all(&other).unwrap();
        fs::write(home.path().join("AGENTS.md"), "above the repository").unwrap();
        fs::write(repository.join("AGENTS.md"), "of the repository").unwrap();
        fs::write(inner.join("AGENTS.md"), "of the inner crate").unwrap();
        fs::write(other.join("AGENTS.md"), "of the other root").unwrap();

        let system = system(&[inner, other.clone(), other]);
        let first = place(&system, "of the other root");
        let second = place(&system, "of the repository");
        let third = place(&system, "of the inner crate");
        assert!(first < second && second < third, "{system}");
        assert!(!system.contains("above the repository"));
        assert_eq!(system.matches("of the other root").count(), 1);
    }

    #[test]
    fn without_a_repository_only_the_root_itself_counts() {
        let home = tempfile::tempdir().unwrap();
        let inner = home.path().join("inner");
        fs::create_dir_all(&inner).unwrap();
        fs::write(home.path().join("AGENTS.md"), "from above").unwrap();
        fs::write(inner.join("AGENTS.md"), "from the folder").unwrap();
        let system = system(&[inner]);
        assert!(system.contains("from the folder") && !system.contains("from above"));
    }

    #[test]
    fn a_long_file_is_cut_with_a_note() {
        let root = tempfile::tempdir().unwrap();
        let text = format!("x{}", "é".repeat(LONGEST));
        fs::write(root.path().join("AGENTS.md"), text).unwrap();
        let system = system(&[root.path().to_owned()]);
        assert!(system.contains("longer than 64 KiB"));
        assert!(!system.contains('\u{fffd}'), "cut inside a character");
        assert!(system.len() < LONGEST + 4096);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_project_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("project");
        fs::create_dir_all(&root).unwrap();
        fs::write(home.path().join("id_rsa"), "the private key").unwrap();
        std::os::unix::fs::symlink(home.path().join("id_rsa"), root.join("AGENTS.md")).unwrap();
        assert!(!system(&[root]).contains("the private key"));
    }

    #[test]
    fn a_link_to_what_is_no_text_is_left_out() {
        let home = tempfile::tempdir().unwrap();
        let notes = home.path().join("notes");
        for folder in [".git", ".ssh", "notes"] {
            fs::create_dir(home.path().join(folder)).unwrap();
        }
        fs::write(home.path().join(".ssh/id"), "the key").unwrap();
        fs::write(notes.join("CLAUDE.md"), "the text").unwrap();
        let link = notes.join(NAME);
        std::os::unix::fs::symlink("../.ssh/id", &link).unwrap();
        assert!(!system(std::slice::from_ref(&notes)).contains("the key"));
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("CLAUDE.md", &link).unwrap();
        assert!(system(&[notes]).contains("the text"));
    }

    #[test]
    fn a_link_that_came_meanwhile_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(NAME);
        fs::write(home.path().join("id"), "the key").unwrap();
        std::os::unix::fs::symlink("id", &file).unwrap();
        let mut text = String::new();
        append(&mut text, &file);
        assert_eq!(text, "");
    }

    /// Anybody may put a repository and instructions there.
    #[test]
    fn a_folder_that_everybody_writes_is_the_top_of_no_other() {
        let shared = tempfile::tempdir().unwrap();
        let inner = shared.path().join("inner");
        for folder in [&shared.path().join(".git"), &inner] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(shared.path().join(NAME), "planted").unwrap();
        let own = system(std::slice::from_ref(&inner));
        assert!(own.contains("planted"));
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
        fs::set_permissions(shared.path(), open).unwrap();
        assert!(!system(&[inner]).contains("planted"));
        assert!(system(&[shared.path().to_owned()]).contains("planted"));
    }
}
