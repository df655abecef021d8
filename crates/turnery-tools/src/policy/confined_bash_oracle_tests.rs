//! Runs the lines that the confined policy allows with a real bash, outside any sandbox, in a folder with
//! hostile file names.
//!
//! No marked program may run and no file may change.

use super::{Judgement, Mode, Policy, bash_oracle_tests::reap, glob, read_only_scripts};
use crate::{Access, Workspace};
use proptest::prelude::*;
use std::{
    collections::BTreeMap,
    fs,
    os::unix::{
        fs::{PermissionsExt, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
};

/// Programs that are not replaced by stubs.
const REAL_PROGRAMS: &[&str] = &[
    "awk", "cat", "cut", "find", "grep", "head", "ls", "sed", "sort", "tac", "tail", "tr", "uniq",
    "wc", "xargs", "xxd",
];
/// Stubs that leave a mark.
const MARKED_PROGRAMS: &[&str] = &["rm", "x", "-exec", "touch"];
/// File names with a special meaning to some program.
const HOSTILE_FILE_NAMES: &[&str] = &[
    "1e x",
    "e x",
    "p;1e x",
    "$p;e x",
    "w M",
    "-i",
    "-n",
    "-f",
    "-exec",
    "--files0-from=x",
    "$(x)",
    "`x`",
    ";x",
    "a b",
    "x",
    "BEGIN{system(\"x\")}",
    "it's",
    "a\nx",
];

struct ConfinedOracleFixture {
    folder: tempfile::TempDir,
    workspace: Workspace,
}

static HOSTILE_FIXTURE: LazyLock<ConfinedOracleFixture> =
    LazyLock::new(|| confined_oracle_fixture(true));
static PLAIN_FIXTURE: LazyLock<ConfinedOracleFixture> =
    LazyLock::new(|| confined_oracle_fixture(false));

fn confined_oracle_fixture(is_hostile: bool) -> ConfinedOracleFixture {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for part in ["bin", "work/src", "work/odd"] {
        fs::create_dir_all(root.join(part)).unwrap();
    }
    for program in REAL_PROGRAMS {
        let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(program));
        // Programs that are not installed are skipped.
        if let Some(real) = found.iter().find(|path| path.exists()) {
            symlink(real, root.join("bin").join(program)).unwrap();
        }
    }
    for program in MARKED_PROGRAMS {
        let path = root.join("bin").join(program);
        fs::write(&path, format!("#!/bin/sh\n: > '{}/mark'\n", root.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let work = root.join("work");
    for name in ["README.md", "a.md", "b.md", "src/lib.rs", "src/main.rs"] {
        fs::write(work.join(name), "x\na b c\n1 2 3\n").unwrap();
    }
    let odd = match is_hostile {
        true => work.clone(),
        false => work.join("odd"),
    };
    // A valid script for programs that read the file as one.
    fs::write(work.join("b.md"), "1e x\n").unwrap();
    for name in HOSTILE_FILE_NAMES {
        fs::write(odd.join(name), "x\n").unwrap();
    }
    // Text that `test` evaluates as a condition if it is not quoted.
    fs::write(work.join("args"), "a -o -v x[$(x)]\n").unwrap();
    ConfinedOracleFixture {
        workspace: Workspace::local(work).unwrap(),
        folder,
    }
}

impl ConfinedOracleFixture {
    fn is_allowed(&self, line: &str) -> bool {
        let policy = Policy::new(Mode::Ask, Vec::new(), Vec::new()).with_confined(true);
        let access = Access::Run {
            command: line.to_owned(),
            cwd: self.workspace.cwd().to_owned(),
        };
        policy.judge("shell", &access, &self.workspace) == Judgement::Allow
    }

    /// Returns true if the line runs a marked program or changes a file.
    fn does_harm(&self, line: &str) -> bool {
        let root = self.folder.path();
        let before = read_contents(&root.join("work"));
        let child = Command::new("/bin/bash")
            .args(["-c", line])
            .current_dir(root.join("work"))
            .env_clear()
            .env("PATH", root.join("bin"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        reap(child, line);
        let has_mark = fs::remove_file(root.join("mark")).is_ok();
        has_mark || read_contents(&root.join("work")) != before
    }
}

fn read_contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(read_contents(&path)),
            false => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    found
}

fn concat_strategy(pieces: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(pieces), 1..most).prop_map(|pieces| pieces.concat())
}

fn sed_strategy() -> impl Strategy<Value = String> {
    let pieces = &[
        "p",
        "p",
        "d",
        "q",
        "n",
        "1",
        "$",
        "1,2",
        "/x/",
        "!",
        "{",
        "}",
        ";",
        ";",
        "\n",
        " ",
        ",",
        "e x",
        "1e x",
        "e",
        "s/a/b/",
        "s/x/x/e",
        "s|.*|x|",
        "s,x,y,g",
        "s/[/]/x/",
        "s/[]/]/",
        "/[/]/",
        "[",
        "]",
        "[^]",
        "/",
        "\\",
        "\\/",
        "w M",
        "w",
        "r README.md",
        "g",
        "I",
        "i\\",
        "a x",
        "#",
        "y/x/y/",
        ":a",
        "b",
        "e;",
        "M",
        "x",
    ];
    concat_strategy(pieces, 7).prop_map(|script| format!("sed -n '{script}'"))
}

fn awk_strategy() -> impl Strategy<Value = String> {
    let pieces = &[
        "{",
        "}",
        "{",
        "}",
        "print",
        "print ",
        "$1",
        " > ",
        ">",
        ">=",
        "\"x\"",
        "\"M\"",
        "|",
        "||",
        "system(\"x\")",
        "system",
        "getline",
        "(",
        ")",
        "BEGIN",
        "END",
        "/a/",
        ";",
        "\n",
        "if (1) ",
        "NR",
        "==1",
        "#",
        "x",
        "a=",
        "function f() ",
        "/{/",
        "\"{\"",
        "\\",
        "printf ",
        ",",
        "@",
        "$0~",
    ];
    concat_strategy(pieces, 8).prop_map(|program| format!("awk '{program}'"))
}

/// Programs and names in double quotes.
fn quoted_strategy() -> impl Strategy<Value = String> {
    let pieces = &[
        "BEGIN",
        "{",
        "}",
        "sys",
        "tem(\\\"x\\\")",
        "\\\n",
        "\\\n",
        "BEGIN{sys\\\ntem(\\\"x\\\")}",
        "\n",
        "\\\\",
        "1",
        "print",
        "\\$1",
        "$?",
        "$f",
        "w\\\n M",
        "1e x",
        "1\\\ne x",
        ";",
    ];
    let program = prop::sample::select(vec!["awk", "sed", "sed -n", "cat", "grep x"]);
    (program, concat_strategy(pieces, 4)).prop_map(|(name, text)| format!("{name} \"{text}\""))
}

/// Conditions: operands, operators that join them, and terminators.
fn condition_strategy() -> impl Strategy<Value = String> {
    let ends = prop::sample::select(vec![("test ", ""), ("[ ", " ]"), ("[[ ", " ]]")]);
    let part = || {
        let operator =
            prop::sample::select(vec!["-n ", "-z ", "-f ", "a = ", "! -n ", "-v ", "1 -eq "]);
        let operand = prop::sample::select(vec![
            "a",
            "README.md",
            "$(cat args)",
            "\"$(cat args)\"",
            "a$(cat args)",
            "$f",
            "\"$PWD\"",
            "$PWD",
            "'x[$(x)]'",
        ]);
        (operator, operand).prop_map(|(operator, operand)| format!("{operator}{operand}"))
    };
    let joint = prop::sample::select(vec![
        "|", "||", "&", "&&", ";", " && ", " || ", " -a ", " ] && ",
    ]);
    let tail = prop_oneof![2 => Just("x".to_owned()), 1 => part()];
    let more = prop::option::of((joint, tail));
    (ends, part(), more).prop_map(|((begin, end), first, more)| {
        let (joint, tail) = more.unwrap_or_default();
        format!("{begin}{first}{joint}{tail}{end}")
    })
}

/// Actions of find.
fn find_strategy() -> impl Strategy<Value = String> {
    let pieces = &[
        " -exec echo \\;",
        " -exec cat {} +",
        " -exec x {} +",
        " -exec echo x {} \\;",
        " -exec touch M ';'",
        " -exec xxd {} +",
        " -exec xxd -l {} +",
        " -fprint M",
        " -delete",
        " -name '*.md'",
        " -print0",
        " -print0 | xargs -0 xxd -l",
        " -print0 | xargs -0 cat",
        " -print0 | xargs -0 -n1 x",
        " | xargs echo",
        " ;",
        " +",
    ];
    concat_strategy(pieces, 4).prop_map(|actions| format!("find a.md b.md README.md{actions}"))
}

/// Names produced by a pattern as parts of options.
fn glued_option_strategy() -> impl Strategy<Value = String> {
    let names = vec!["sed p", "sed -n p", "awk 1", "grep x", "sort", "xxd"];
    let parts = concat_strategy(&["-f", "-i", "-e p ", "--file=", " a.md ", "$f", "-E"], 4);
    (prop::sample::select(names), parts)
        .prop_map(|(name, parts)| format!("for f in *.md; do {name} {parts}$f; done"))
}

fn command_strategy() -> impl Strategy<Value = String> {
    let simple = prop::sample::select(vec![
        "cat",
        "ls",
        "wc -l",
        "head -n 1",
        "sed",
        "sed -n",
        "sed -n p",
        "awk",
        "awk '{print}'",
        "grep x",
        "grep",
        "sort",
        "uniq",
        "xxd",
        "xxd -p",
        "xxd -ps",
        "xxd -l",
        "xxd -pl 1",
        "echo",
        "printf",
        "test -f",
        "[ -f",
        "x",
        "find",
        "find .",
        "xargs cat",
        "tail",
    ])
    .prop_map(str::to_owned);
    let words = prop::sample::select(vec![
        "",
        "",
        " *",
        " ?*",
        " [ab]*",
        " -*",
        " *.md",
        " src/*",
        " \"$f\"",
        " $f",
        " README.md",
        " -- *",
        " odd/*",
        " ]",
        " -e \"$f\"",
        " 1e*",
        " */",
        " \"$HOME\"",
        " '$(x)'",
        " a.md b.md",
        " {}",
        " .*",
        " $f/*",
        " README.md M",
        " $(cat args)",
    ]);
    let name = prop_oneof![3 => simple, 3 => sed_strategy(), 3 => awk_strategy()];
    (name, words).prop_map(|(name, words)| format!("{name}{words}"))
}

/// A line of the wider grammar, with a few fragments inserted at arbitrary positions.
fn line_strategy() -> impl Strategy<Value = String> {
    let around = prop::sample::select(vec![
        "@",
        "@",
        "for f in *; do @; done",
        "for f in *.md; do @; done",
        "for f in odd/*; do @; done",
        "for f in p '1e x' x; do @; done",
        "for f in README.md src; do @; done",
        "for f in a b; do for g in p; do @; done; done",
        "[ -f README.md ] && @",
        "if [[ -f README.md ]]; then @; fi",
        "@ # x",
        "# x\n@",
        "ls\n@",
        "ls | @",
        "cd src && @",
        "cd odd; @",
        "find . -print0 | xargs -0 @",
        "find . | xargs @",
        "find src | xargs @",
        "grep -rlZ x . | xargs -0 @",
        "grep -rl x src | sort | xargs @",
        "find . -exec @ {} +",
        "find src -exec @ {} \\;",
        "echo \"$(@)\"",
    ]);
    let extra = prop::sample::select(vec![
        "\n",
        " ",
        "x",
        ";",
        "#",
        " #",
        "\\",
        "\\\n",
        "'",
        "\"",
        "$",
        "$(x)",
        "`x`",
        "[",
        "]",
        "[[",
        " && ",
        "|",
        "(",
        ")",
        "do ",
        "done",
        "*",
        "> M",
        "-i",
        " -0",
        "$f",
        "${f}",
        "~",
        "{",
        "}",
        "x=",
        "!",
        "'$(x)'",
        "-v 'a[$(x)]'",
        "-eq",
        "f=x;",
        "<",
        "&",
    ]);
    let extras = prop::collection::vec((extra, any::<prop::sample::Index>()), 0..3);
    (around, command_strategy(), extras).prop_map(|(around, command, extras)| {
        let mut line = around.replace('@', &command);
        for (piece, at) in extras {
            let ends: Vec<usize> = line
                .char_indices()
                .map(|(at, _)| at)
                .chain([line.len()])
                .collect();
            line.insert_str(*at.get(&ends), piece);
        }
        line
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn allowed_line_does_no_harm_among_hostile_names(line in line_strategy()) {
        for bench in [&*HOSTILE_FIXTURE, &*PLAIN_FIXTURE] {
            if bench.is_allowed(&line) {
                prop_assert!(!bench.does_harm(&line), "{:?}", line);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn allowed_command_does_no_harm(line in prop_oneof![condition_strategy(), quoted_strategy(), find_strategy(), glued_option_strategy()]) {
        for bench in [&*HOSTILE_FIXTURE, &*PLAIN_FIXTURE] {
            if bench.is_allowed(&line) {
                prop_assert!(!bench.does_harm(&line), "{:?}", line);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn pattern_expansion_matches_bash(
        names in prop::collection::vec("[-ab.1é*?\\[ =]{1,4}", 0..8),
        pattern in prop::collection::vec(
            prop::sample::select(vec!["*", "?", "[ab]", "[0-9]", "a", "b", "1", ".", "-", "d/", "*/", "**", "[b1]", "./"]),
            1..6,
        ),
    ) {
        let pattern = pattern.concat();
        prop_assume!(glob::is_pattern(&pattern));
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("d")).unwrap();
        for (at, name) in names.iter().filter(|name| !matches!(name.as_str(), "." | "..")).enumerate() {
            let place = if at % 3 == 2 { root.join("d") } else { root.clone() };
            fs::write(place.join(name), "").unwrap();
        }
        let workspace = Workspace::local(root.clone()).unwrap();
        let Ok(mut expanded) = glob::expand_pattern(&pattern, &root, &workspace, &mut 1000) else {
            return Ok(());
        };
        for locale in ["C", "C.UTF-8"] {
            let output = Command::new("/bin/bash")
                .args(["-c", &format!("printf '%s\\0' {pattern}")])
                .env("LC_ALL", locale)
                .current_dir(&root)
                .output()
                .unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let mut by_bash: Vec<String> = text.split_terminator('\0').map(str::to_owned).collect();
            by_bash.sort();
            expanded.sort();
            match expanded.is_empty() {
                true => prop_assert_eq!(&by_bash, std::slice::from_ref(&pattern)),
                false => prop_assert_eq!(&by_bash, &expanded, "{} {}", pattern, locale),
            }
            prop_assert!(expanded.iter().all(|name| !name.starts_with('-')));
        }
    }
}

#[test]
fn oracle_detects_harm() {
    let bench = confined_oracle_fixture(true);
    for line in [
        "x",
        "sed '1e x' README.md",
        "echo x > M",
        "for f in *; do sed \"$f\" README.md; done",
    ] {
        assert!(bench.does_harm(line), "{line}");
        let _ = fs::remove_file(bench.workspace.cwd().join("M"));
    }
    assert!(!bench.does_harm("cat README.md"));
}

#[test]
fn allowed_lines_of_every_kind_do_no_harm() {
    let bench = confined_oracle_fixture(false);
    for line in [
        "cat *.md",
        "for f in *.md; do wc -l \"$f\"; done",
        "sed -n '1,2p;/x/p' *.md",
        "awk '{print $1}' *.md",
        "[ -f README.md ] && cat README.md # x\nls",
        "find src -print0 | xargs -0 cat",
        "find src -name '*.rs' -exec cat {} +",
    ] {
        assert!(bench.is_allowed(line), "{line}");
        assert!(!bench.does_harm(line), "{line}");
    }
}

#[test]
fn oracle_detects_scripts_when_check_is_off() {
    let bench = confined_oracle_fixture(false);
    let lines = [
        "sed '1e x' README.md",
        "sed 's/x/x/e' README.md",
        "sed 's/[]/]/;s/p;1e x #/x/' README.md",
        "awk 'BEGIN{system(\"x\")}'",
        "awk 'BEGIN{print 1 | \"x\"}'",
    ];
    for line in lines {
        assert!(!bench.is_allowed(line), "{line}");
    }
    read_only_scripts::IGNORES_SCRIPTS.set(true);
    let found: Vec<&str> = lines
        .into_iter()
        .filter(|line| bench.is_allowed(line) && bench.does_harm(line))
        .collect();
    read_only_scripts::IGNORES_SCRIPTS.set(false);
    assert!(found.len() >= 4, "{found:?}");
}
