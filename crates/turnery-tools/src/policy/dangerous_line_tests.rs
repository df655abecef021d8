//! Checks that no line of `dangerous.txt` is allowed without approval.

use super::{Judgement, Mode, Policy};
use crate::{Access, Workspace};

#[test]
fn dangerous_lines_are_never_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for part in ["src", "secrets"] {
        std::fs::create_dir(root.join(part)).unwrap();
    }
    for file in [
        "README.md",
        "Makefile",
        "src/lib.rs",
        "secrets/key",
        "package.json",
        "a.tar",
    ] {
        std::fs::write(root.join(file), "x\n").unwrap();
    }
    // Programs that walk `src` find the second link.
    for link in ["outside", "src/passwords"] {
        std::os::unix::fs::symlink("/etc", root.join(link)).unwrap();
    }
    std::fs::create_dir_all(root.join("src/one/two")).unwrap();
    std::os::unix::fs::symlink("src/one/two", root.join("deep")).unwrap();
    let workspace = Workspace::local(root).unwrap();
    let lines: Vec<(&str, String)> = include_str!("dangerous.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
        .map(|line| line.split_once(" :: ").unwrap())
        .map(|(effect, line)| (effect, line.replace('⏎', "\n")))
        .collect();
    assert!(lines.len() >= 200, "{}", lines.len());
    let mut allowed = Vec::new();
    for (mode, confined) in [
        (Mode::Ask, false),
        (Mode::Plan, false),
        (Mode::Ask, true),
        (Mode::Plan, true),
    ] {
        let policy = Policy::new(mode, Vec::new(), Vec::new()).with_confined(confined);
        for (effect, line) in &lines {
            let access = Access::Run {
                command: line.clone(),
                cwd: workspace.cwd().to_owned(),
            };
            if policy.judge("shell", &access, &workspace) == Judgement::Allow {
                allowed.push((mode, confined, effect, line));
            }
        }
    }
    assert!(allowed.is_empty(), "{allowed:#?}");
}
