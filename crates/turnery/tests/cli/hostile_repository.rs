//! The offline model in a repository whose configuration names programs.

use crate::home::{Home, wait_with_output};
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
/// Part of `.git/config` that makes git fetch missing objects, with a program.
const PROMISOR: &str = "[core]\nrepositoryformatversion = 1\n[extensions]\npartialClone = origin\n\
                        [remote \"origin\"]\nurl = .\npromisor = true\nuploadpack = @remote\n";
const PROGRAMS: [&str; 8] = [
    "fsmonitor",
    "external",
    "command",
    "textconv",
    "clean",
    "smudge",
    "process",
    "remote",
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
    program("hook", ".git/hooks/post-index-change");
    let config = fs::read_to_string(project.join(".git/config")).expect("written");
    write(".git/config", &(config + &settings));
    for name in files {
        write(name, "two\n");
    }
}

/// Removes the committed content of `a.text`, which git then fetches from a promisor remote.
fn remove_object(project: &Path) {
    let name = git(project, &["rev-parse", "HEAD:a.text"]).stdout;
    let name = String::from_utf8(name).expect("UTF-8");
    let (folder, file) = name.trim().split_at(2);
    let objects = project.join(".git/objects");
    fs::remove_file(objects.join(folder).join(file)).expect("an object");
}

/// Adds a folder `docs` that git, but nothing that looks for `.git`, takes for a repository.
fn embed_repository(home: &Home) {
    let project = home.project_folder();
    let write = |name: &str, text: &str| home.write_file(project.join("docs").join(name), text);
    write("HEAD", "ref: refs/heads/main\n");
    write("commondir", "x\n");
    write(
        "x/config",
        "[core]\nrepositoryformatversion = 1\n[extensions]\nworktreeConfig = true\n",
    );
    let program = project.join("programs/fsmonitor");
    let core = format!(
        "[core]\nbare = false\nworktree = ..\nfsmonitor = {}\n",
        program.display()
    );
    write("config.worktree", &core);
    for folder in ["objects", "refs"] {
        fs::create_dir(project.join("docs/x").join(folder)).expect("a folder");
    }
    fs::copy(project.join(".git/index"), project.join("docs/index")).expect("an index");
}

/// Creates a hostile repository with these settings, with whatever makes them effective; returns its folder of
/// marks, which is a temporary one, where a confined command can leave a mark.
fn prepare(home: &Home, settings: &str, folder: &str) -> tempfile::TempDir {
    let marks = tempfile::tempdir().expect("a folder");
    create_hostile_repository(home, marks.path(), settings);
    if settings == PROMISOR {
        remove_object(&home.project_folder());
    }
    if folder == "docs" {
        embed_repository(home);
    }
    marks
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

/// Asks the offline model, started in `folder`, about changes in a repository with these settings; asserts that
/// none of its programs runs, and that the answer lists the changes or git was denied.
async fn assert_no_program_runs(settings: &str, folder: &str, sandbox: &str) {
    let home = Home::new();
    let marks = prepare(&home, settings, folder);
    for prompt in ["what changed?", "run `git status`", "run `git diff`"] {
        outdate_index(&home.project_folder(), 1);
        let mut run = home.command(&["run", "--model", "offline", "--sandbox", sandbox, prompt]);
        run.current_dir(home.project_folder().join(folder));
        let done = wait_with_output(run.spawn().expect("started")).await;
        assert_eq!(take_marks(marks.path()), [""; 0], "{settings} {done:?}");
        assert_eq!(done.code, Some(0), "{done:?}");
        let is_clear = done.stdout.contains("a.text") || done.stderr.contains("✗ denied: git ");
        assert!(is_clear, "{settings}: {done:?}");
    }
}

#[tokio::test]
async fn offline_model_runs_no_program_of_a_repository() {
    for sandbox in ["off", "workspace"] {
        assert_no_program_runs(&SETTINGS.concat(), "", sandbox).await;
        for settings in SETTINGS.iter().chain(&["", PROMISOR]) {
            assert_no_program_runs(settings, "", sandbox).await;
        }
        assert_no_program_runs("", "docs", sandbox).await;
    }
}

/// Control of the test above: git itself runs each program.
#[test]
fn git_runs_the_programs_of_a_repository() {
    let all = SETTINGS.concat();
    let of_settings = RUN_BY_GIT.map(|(args, programs)| (all.as_str(), "", args, programs));
    let others: [(_, _, &[&str], &[&str]); 3] = [
        (PROMISOR, "", &["diff"], &["remote"]),
        ("", "docs", &["status"], &["fsmonitor"]),
        ("", "", &["status"], &["hook"]),
    ];
    for (settings, folder, args, programs) in of_settings.into_iter().chain(others) {
        let home = Home::new();
        let marks = prepare(&home, settings, folder);
        outdate_index(&home.project_folder(), 1);
        let done = git(&home.project_folder().join(folder), args);
        let marks = take_marks(marks.path());
        for program in programs {
            let is_run = marks.iter().any(|mark| mark == program);
            assert!(is_run, "{args:?}, {program}: {marks:?} {done:?}");
        }
    }
}
