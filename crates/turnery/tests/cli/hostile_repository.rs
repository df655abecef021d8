//! The offline model in a repository whose configuration names programs.

use crate::home::Home;
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
    time::{Duration, SystemTime},
};

/// Parts of `.git/config` that name programs; `@name` becomes the program of this name.
const SETTINGS: [&str; 7] = [
    "[core]\nfsmonitor = @fsmonitor\n",
    "[core]\nhooksPath = hooks\n",
    "[diff]\nexternal = @external\n",
    "[diff \"command\"]\ncommand = @command\n",
    "[diff \"text\"]\ntextconv = @textconv\n",
    "[filter \"plain\"]\nclean = @clean\nsmudge = @smudge\n",
    "[filter \"process\"]\nprocess = @process\n",
];
const PROGRAMS: [&str; 7] = [
    "fsmonitor",
    "external",
    "command",
    "textconv",
    "clean",
    "smudge",
    "process",
];
const ATTRIBUTES: &str =
    "*.command diff=command\n*.text diff=text\n*.plain filter=plain\n*.process filter=process\n";

/// Arguments of git, each with the repository's programs that git then runs. The last command fails, since
/// its filter process exits at once.
const RUN_BY_GIT: [(&[&str], &[&str]); 4] = [
    (
        &["-c", "filter.process.process=", "status"],
        &["fsmonitor", "clean", "post-index-change"],
    ),
    (
        &["-c", "filter.process.process=", "diff"],
        &["external", "command", "smudge"],
    ),
    (
        &["-c", "filter.process.process=", "diff", "--no-ext-diff"],
        &["textconv"],
    ),
    (&["diff"], &["process"]),
];

fn git(project: &Path, args: &[&str]) -> Output {
    let git = Command::new("git").args(args).current_dir(project).output();
    git.expect("git")
}

/// Makes the project a git repository with uncommitted changes and with `settings` in `.git/config`. Each of
/// its programs creates a file in `marks` when it runs.
fn create_hostile_repository(home: &Home, marks: &Path, settings: &str) {
    let project = home.project_folder();
    let write = |name: &str, text: &str| home.write_file(project.join(name), text);
    let files = ["a.command", "a.text", "a.plain", "a.process", "a.other"];
    for name in files.iter().chain(&["unchanged"]) {
        write(name, "one\n");
    }
    write(".gitattributes", ATTRIBUTES);
    let author = ["-c", "user.name=a", "-c", "user.email=a@b"];
    for args in [
        &["init", "-qb", "main"][..],
        &["add", "."],
        &["commit", "-qm", "one"],
    ] {
        let done = git(&project, &[&author[..], args].concat());
        assert!(done.status.success(), "{args:?}: {done:?}");
    }
    let program = |name: &str, path: &str| {
        let mark = format!("#!/bin/sh\n: > '{}/{name}'\n", marks.display());
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(write(path, &mark), mode).expect("executable");
    };
    let mut settings = settings.to_owned();
    for name in PROGRAMS {
        program(name, &format!("programs/{name}"));
        settings = settings.replace(&format!("@{name}"), &format!("./programs/{name}"));
    }
    program("post-index-change", "hooks/post-index-change");
    let config = fs::read_to_string(project.join(".git/config")).expect("written");
    write(".git/config", &(config + &settings));
    for name in files {
        write(name, "two\n");
    }
}

/// Sets back the modification time of an unchanged file, so that git refreshes its index.
fn outdate_index(project: &Path, hours: u64) {
    let path = project.join("unchanged");
    let file = fs::File::options().write(true).open(path);
    let time = SystemTime::now() - Duration::from_secs(hours * 3600);
    file.and_then(|file| file.set_modified(time)).expect("set");
}

fn take_marks(marks: &Path) -> Vec<String> {
    let names = fs::read_dir(marks).expect("a folder").map(|mark| {
        let mark = mark.expect("a mark");
        fs::remove_file(mark.path()).expect("removed");
        mark.file_name().into_string().expect("UTF-8")
    });
    names.collect()
}

/// Asks the offline model about changes in a repository with these settings; asserts that none of its
/// programs runs, and that the answer lists the changes or git was denied.
async fn assert_no_program_runs(settings: &str, sandbox: &str) {
    let home = Home::new();
    // In a temporary folder, where a confined command can leave a mark.
    let marks = tempfile::tempdir().expect("a folder");
    create_hostile_repository(&home, marks.path(), settings);
    for prompt in ["what changed?", "run `git status`", "run `git diff`"] {
        outdate_index(&home.project_folder(), 1);
        let run = ["run", "--model", "offline", "--sandbox", sandbox, prompt];
        let done = home.run(&run).await;
        assert_eq!(take_marks(marks.path()), [""; 0], "{settings} {done:?}");
        assert_eq!(done.code, Some(0), "{done:?}");
        let is_clear = done.stdout.contains("a.text") || done.stderr.contains("✗ denied: git ");
        assert!(is_clear, "{settings}: {done:?}");
    }
}

#[tokio::test]
async fn offline_model_runs_no_program_of_a_repository() {
    for sandbox in ["off", "workspace"] {
        assert_no_program_runs(&SETTINGS.concat(), sandbox).await;
        for settings in SETTINGS {
            assert_no_program_runs(settings, sandbox).await;
        }
    }
}

/// Control of the test above: git itself runs each program.
#[test]
fn git_runs_the_programs_of_a_repository() {
    let home = Home::new();
    let marks = tempfile::tempdir().expect("a folder");
    create_hostile_repository(&home, marks.path(), &SETTINGS.concat());
    outdate_index(&home.project_folder(), 1);
    for (args, programs) in RUN_BY_GIT {
        let done = git(&home.project_folder(), args);
        let marks = take_marks(marks.path());
        for program in programs {
            let is_run = marks.iter().any(|mark| mark == program);
            assert!(is_run, "{args:?}, {program}: {marks:?} {done:?}");
        }
    }
}
