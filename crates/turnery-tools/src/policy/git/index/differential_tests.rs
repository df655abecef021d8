//! Compares the index parser with git itself, on damaged files.

use super::{GITLINK_MODE, parse_index};
use proptest::prelude::*;
use std::{
    cell::Cell,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

fn run_git(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("git");
    command.args(["-c", "core.fsmonitor=false"]);
    let output = command.args(arguments).current_dir(folder).output();
    output.unwrap()
}

/// Creates repositories with an index of each version, long names and a submodule.
fn index_repositories() -> Vec<(tempfile::TempDir, Vec<u8>)> {
    let long = format!("long/{}", "x".repeat(200));
    let made = ["2", "3", "4"].map(|version| {
        let folder = tempfile::tempdir().unwrap();
        let run = |arguments: &[&str]| {
            let output = run_git(folder.path(), arguments);
            assert!(output.status.success(), "{arguments:?}: {output:?}");
        };
        run(&["init", "-q"]);
        for name in ["a", "a.b", "a/c", "src/main", "src/main.rs", &long] {
            let file = folder.path().join(name.replace("a/c", "d/c"));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, name).unwrap();
        }
        run(&["add", "."]);
        let link = format!("160000,{},sub/module", "12".repeat(20));
        run(&["update-index", "--add", "--cacheinfo", &link]);
        if version == "3" {
            run(&["update-index", "--skip-worktree", "a.b"]);
        } else {
            run(&["update-index", "--index-version", version]);
        }
        let index = fs::read(folder.path().join(".git/index")).unwrap();
        assert_eq!(index[4..8], [0, 0, 0, version.parse().unwrap()]);
        (folder, index)
    });
    made.into()
}

/// Returns all paths in the index of a folder, and those of submodules, as git reports them; `None` if git
/// refuses the index.
fn read_with_git(folder: &Path) -> Option<(Vec<PathBuf>, Vec<PathBuf>)> {
    let output = run_git(folder, &["ls-files", "--stage", "-z"]);
    if !output.status.success() {
        return None;
    }
    let (mut all, mut links) = (Vec::new(), Vec::new());
    for entry in output.stdout.split(|byte| *byte == 0) {
        let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else {
            continue;
        };
        let name = PathBuf::from(OsStr::from_bytes(&entry[tab + 1..]));
        if entry.starts_with(b"160000 ") {
            links.push(name.clone());
        }
        all.push(name);
    }
    Some((all, links))
}

/// If a damaged index is understood, git finds the same files and submodules in it.
#[test]
fn index_is_read_as_git_reads_it() {
    let repositories = index_repositories();
    for (folder, index) in &repositories {
        let all = parse_index(index, 20, |_| true).unwrap();
        let links = parse_index(index, 20, |mode| mode == GITLINK_MODE).unwrap();
        assert_eq!((all.len(), links.len()), (7, 1));
        assert_eq!(read_with_git(folder.path()), Some((all, links)));
    }
    let understood = Cell::new(0);
    let damage = (
        any::<prop::sample::Index>(),
        any::<bool>(),
        0_u8..8,
        any::<u8>(),
    );
    let damages = (0..repositories.len(), prop::collection::vec(damage, 1..3));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 3000,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let result = runner.run(&damages, |(which, damages)| {
        let (folder, index) = &repositories[which];
        let mut bytes = index.clone();
        for (at, flips, bit, byte) in damages {
            // The checksum is not verified.
            let at = at.index(bytes.len() - 20);
            bytes[at] = if flips { bytes[at] ^ (1 << bit) } else { byte };
        }
        if let Some(all) = parse_index(&bytes, 20, |_| true) {
            let links = parse_index(&bytes, 20, |mode| mode == GITLINK_MODE).unwrap();
            fs::write(folder.path().join(".git/index"), &bytes).unwrap();
            let told = read_with_git(folder.path());
            understood.set(understood.get() + usize::from(told.is_some()));
            prop_assert!(told.is_none() || told == Some((all, links)), "{:?}", bytes);
        }
        Ok(())
    });
    assert!(result.is_ok(), "{}", result.unwrap_err());
    let understood = understood.get();
    assert!(understood > 300, "only {understood} were understood");
}
