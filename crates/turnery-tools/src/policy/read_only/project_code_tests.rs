//! Compares the programs of the read-only table with those whose project files are checked.

use super::*;
use std::{collections::BTreeSet, fs};

/// Programs that read no files of a project that make them run something.
const RUN_NO_PROJECT_CODE: &[&str] = &[
    ":",
    "[",
    "[[",
    "basename",
    "cat",
    "cmp",
    "column",
    "comm",
    "command",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "false",
    "fgrep",
    "find",
    "fold",
    "free",
    "grep",
    "head",
    "hexdump",
    "hostname",
    "id",
    "ls",
    "md5sum",
    "nl",
    "nproc",
    "od",
    "paste",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "sed",
    "seq",
    "sha1sum",
    "sha256sum",
    "sleep",
    "sort",
    "stat",
    "strings",
    "tac",
    "tail",
    "tar",
    "test",
    "tr",
    "true",
    "type",
    "ulimit",
    "uname",
    "uniq",
    "unzip",
    "uptime",
    "wc",
    "which",
    "whoami",
    "xargs",
    "xxd",
];

/// In a folder with every kind of such files, a program is either refused or listed here.
#[test]
fn every_read_only_program_is_checked_for_project_code() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for part in [".git/objects", ".git/refs"] {
        fs::create_dir_all(root.join(part)).unwrap();
    }
    for (name, text) in [
        (".git/HEAD", "ref: refs/heads/main\n"),
        (".git/config", "[core]\nfsmonitor = ./x\n"),
        (".npmrc", "script-shell=./x\n"),
        (".tool-versions", "jq path:./x\n"),
        ("rust-toolchain.toml", "[toolchain]\npath = \"x\"\n"),
    ] {
        fs::write(root.join(name), text).unwrap();
    }
    let workspace = Workspace::local(root.clone()).unwrap();
    let refuses = |words: &[&str]| {
        let args = words[1..]
            .iter()
            .map(|&word| ShellWord::Literal(word.into()));
        let command = SimpleCommand {
            name: words[0].to_owned(),
            args: args.collect(),
            is_opaque: false,
            is_stdin_redirected: false,
            upstream: Vec::new(),
        };
        let bases = std::slice::from_ref(&root);
        may_run_project_code(&command, bases, &workspace, ProgramSet::Confined)
    };
    let mut harmless = BTreeSet::new();
    for program in READ_ONLY_PROGRAMS.into_iter().flatten() {
        if !refuses(program.words) {
            harmless.insert(program.words[0]);
        }
    }
    assert_eq!(
        harmless.into_iter().collect::<Vec<_>>(),
        RUN_NO_PROJECT_CODE
    );
}
