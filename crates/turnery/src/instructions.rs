//! Builds the system prompt: role, working directory, then the AGENTS.md files.
//!
//! The prompt contains nothing that changes between prompts, such as the date, since providers cache it.

use rustix::fs::OFlags;
use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

/// Largest part of an AGENTS.md file that is read. Unit: bytes.
pub(crate) const MAX_FILE_BYTES: usize = 64 << 10;

const FILE_NAME: &str = "AGENTS.md";

/// Returns the system prompt for a session in `roots`, of which the working directory is the first.
pub(crate) fn system_prompt(roots: &[PathBuf]) -> Arc<str> {
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
    // In reverse: later instructions take precedence, and earlier roots do over later ones (DIR-6).
    let mut seen = Vec::new();
    for root in roots.iter().rev() {
        for file in agents_files(root) {
            if !seen.contains(&file) {
                append_file(&mut text, &file);
                seen.push(file);
            }
        }
    }
    text.into()
}

/// Returns the AGENTS.md files for a root, from the top of its repository down to the root.
fn agents_files(root: &Path) -> Vec<PathBuf> {
    let is_top = |folder: &&Path| {
        folder.join(".git").exists() && (*folder == root || !is_shared_folder(folder))
    };
    let top = root.ancestors().find(is_top).unwrap_or(root);
    let mut files: Vec<PathBuf> = root
        .ancestors()
        .take_while(|folder| folder.starts_with(top))
        .filter_map(|folder| resolve_inside(&folder.join(FILE_NAME), top))
        .collect();
    files.reverse();
    files
}

/// Returns true if other users can create files in the folder, as in one for temporary files.
fn is_shared_folder(folder: &Path) -> bool {
    let is_open = |found: fs::Metadata| found.mode() & 0o002 != 0;
    folder == std::env::temp_dir() || folder.metadata().is_ok_and(is_open)
}

/// Returns the resolved path of `file` if it is a Markdown file inside `top`. Links that lead out of the
/// project are not followed, since the file's contents are sent to the model's provider.
pub(crate) fn resolve_inside(file: &Path, top: &Path) -> Option<PathBuf> {
    let file = file.canonicalize().ok()?;
    if !file.starts_with(top.canonicalize().ok()?) {
        tracing::warn!("{} leads out of its project; left out", file.display());
        return None;
    }
    // In a home folder that is a repository, a link may lead to a key.
    let is_text = file
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("md"));
    (is_text && file.is_file()).then_some(file)
}

/// Opens a file with a resolved path. Fails if it has become a link since, and does not block on a pipe.
pub(crate) fn open_no_follow(file: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = File::options();
    options.read(true).custom_flags(flags.bits().cast_signed());
    options.open(file)
}

fn append_file(text: &mut String, file: &Path) {
    let mut bytes = Vec::new();
    let read = open_no_follow(file)
        .and_then(|file| file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        tracing::warn!("{} cannot be read: {error}", file.display());
        return;
    }
    let cut = bytes.len() > MAX_FILE_BYTES;
    bytes.truncate(MAX_FILE_BYTES);
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

    fn position_of(system: &str, text: &str) -> usize {
        system
            .find(text)
            .unwrap_or_else(|| panic!("{text:?} is missing"))
    }

    /// A date would change the beginning of all requests of a session overnight.
    #[test]
    fn prompt_has_no_date() {
        let folder = tempfile::Builder::new().prefix("a").tempdir().unwrap();
        let system = system_prompt(&[folder.path().to_owned()]);
        let year = turnery_store::now().format("%Y").to_string();
        assert!(!system.contains(&year), "{system}");
        assert_eq!(system, system_prompt(&[folder.path().to_owned()]));
    }

    #[test]
    fn built_in_prompt_is_short() {
        assert!(include_str!("instructions.md").len() < 2048);
    }

    // proves: DIR-6
    #[test]
    fn nearest_agents_file_comes_last_within_repository() {
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

        let system = system_prompt(&[inner, other.clone(), other]);
        let first = position_of(&system, "of the other root");
        let second = position_of(&system, "of the repository");
        let third = position_of(&system, "of the inner crate");
        assert!(first < second && second < third, "{system}");
        assert!(!system.contains("above the repository"));
        assert_eq!(system.matches("of the other root").count(), 1);
    }

    #[test]
    fn without_repository_only_root_is_read() {
        let home = tempfile::tempdir().unwrap();
        let inner = home.path().join("inner");
        fs::create_dir_all(&inner).unwrap();
        fs::write(home.path().join("AGENTS.md"), "from above").unwrap();
        fs::write(inner.join("AGENTS.md"), "from the folder").unwrap();
        let system = system_prompt(&[inner]);
        assert!(system.contains("from the folder") && !system.contains("from above"));
    }

    #[test]
    fn long_file_is_cut_with_note() {
        let root = tempfile::tempdir().unwrap();
        let text = format!("x{}", "é".repeat(MAX_FILE_BYTES));
        fs::write(root.path().join("AGENTS.md"), text).unwrap();
        let system = system_prompt(&[root.path().to_owned()]);
        assert!(system.contains("longer than 64 KiB"));
        assert!(!system.contains('\u{fffd}'), "cut inside a character");
        assert!(system.len() < MAX_FILE_BYTES + 4096);
    }

    #[cfg(unix)]
    #[test]
    fn link_out_of_project_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("project");
        fs::create_dir_all(&root).unwrap();
        fs::write(home.path().join("id_rsa"), "the private key").unwrap();
        std::os::unix::fs::symlink(home.path().join("id_rsa"), root.join("AGENTS.md")).unwrap();
        assert!(!system_prompt(&[root]).contains("the private key"));
    }

    #[test]
    fn link_to_non_markdown_file_is_skipped() {
        let home = tempfile::tempdir().unwrap();
        let notes = home.path().join("notes");
        for folder in [".git", ".ssh", "notes"] {
            fs::create_dir(home.path().join(folder)).unwrap();
        }
        fs::write(home.path().join(".ssh/id"), "the key").unwrap();
        fs::write(notes.join("CLAUDE.md"), "the text").unwrap();
        let link = notes.join(FILE_NAME);
        std::os::unix::fs::symlink("../.ssh/id", &link).unwrap();
        assert!(!system_prompt(std::slice::from_ref(&notes)).contains("the key"));
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("CLAUDE.md", &link).unwrap();
        assert!(system_prompt(&[notes]).contains("the text"));
    }

    #[test]
    fn link_created_after_check_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(FILE_NAME);
        fs::write(home.path().join("id"), "the key").unwrap();
        std::os::unix::fs::symlink("id", &file).unwrap();
        let mut text = String::new();
        append_file(&mut text, &file);
        assert_eq!(text, "");
    }

    /// Other users may place a repository with instructions there.
    #[test]
    fn world_writable_folder_is_no_repository_root() {
        let shared = tempfile::tempdir().unwrap();
        let inner = shared.path().join("inner");
        for folder in [&shared.path().join(".git"), &inner] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(shared.path().join(FILE_NAME), "planted").unwrap();
        let own = system_prompt(std::slice::from_ref(&inner));
        assert!(own.contains("planted"));
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
        fs::set_permissions(shared.path(), open).unwrap();
        assert!(!system_prompt(&[inner]).contains("planted"));
        assert!(system_prompt(&[shared.path().to_owned()]).contains("planted"));
    }
}
