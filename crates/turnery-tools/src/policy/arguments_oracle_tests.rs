//! Compares the arguments that a real bash passes to programs with those that the parser judged.

use super::{bash_oracle_tests::run_bash, command_line::CommandLine};
use crate::Workspace;
use proptest::prelude::*;
use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, sync::LazyLock};

/// Folder with programs that record their names and arguments.
struct RecordingPrograms {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

static PROGRAMS: LazyLock<RecordingPrograms> = LazyLock::new(RecordingPrograms::new);
static CONFINED: LazyLock<RecordingPrograms> = LazyLock::new(RecordingPrograms::new);

impl RecordingPrograms {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::create_dir_all(root.join("work/src")).unwrap();
        let log = root.join("log");
        let script = format!(
            "#!/bin/sh\nprintf '%s\\0' \"${{0##*/}}\" \"$@\" END >> '{}'\n",
            log.display()
        );
        for program in ["ls", "cargo", "git", "cat", "rm", "a", "x"] {
            let path = root.join("bin").join(program);
            fs::write(&path, &script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self {
            _folder: folder,
            root,
        }
    }

    /// Runs the line with a real bash. Returns the name and the arguments of each program that it started.
    fn run(&self, line: &str) -> Vec<Vec<String>> {
        let log = self.root.join("log");
        let _ = fs::remove_file(&log);
        run_bash(&self.root, line);
        let text = fs::read(&log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let words = text.split_terminator('\0').map(str::to_owned);
        let words: Vec<String> = words.collect();
        let mut runs: Vec<_> = words.split(|word| word == "END").collect();
        runs.pop();
        runs.into_iter().map(<[String]>::to_vec).collect()
    }

    /// Returns the programs that the line starts with arguments that the parser did not see; empty if the
    /// parser is not certain of the line.
    fn unseen(&self, line: &str, parsed: &CommandLine) -> Vec<Vec<String>> {
        let seen: Option<Vec<Vec<&str>>> = parsed
            .commands
            .iter()
            .map(|it| it.literal_words())
            .collect();
        // `time` is a bash keyword, which the policy reads as a program.
        let is_timed = parsed.commands.iter().any(|it| it.name == "time");
        let Some(seen) = seen.filter(|_| !parsed.is_uncertain && !is_timed) else {
            return Vec::new();
        };
        let mut runs = self.run(line);
        runs.retain(|run| !seen.iter().any(|seen| seen == run));
        runs
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arguments_in_bash_are_those_that_were_judged(line in super::bash_oracle_tests::line_strategy()) {
        let unseen = PROGRAMS.unseen(&line, &CommandLine::parse(&line));
        prop_assert!(unseen.is_empty(), "{:?}: {:?}", line, unseen);
    }

    /// Several lines with comments, without words that expand to several others.
    #[test]
    fn arguments_of_confined_lines_are_those_that_were_judged(
        lines in prop::collection::vec(super::bash_oracle_tests::line_strategy(), 1..3),
        between in prop::sample::select(vec!["\n", "\n#", " #", "\\\n"]),
    ) {
        let line = lines.join(between);
        let programs = &*CONFINED;
        let workspace = Workspace::local(programs.root.join("work")).unwrap();
        if !line.contains("for ") && !line.contains(['*', '$', '?', '[']) {
            let parsed = CommandLine::parse_confined(&line, workspace.cwd(), &workspace);
            let unseen = programs.unseen(&line, &parsed);
            prop_assert!(unseen.is_empty(), "{:?}: {:?}", line, unseen);
        }
    }
}

#[test]
fn word_that_the_grammar_parts_is_doubtful() {
    assert_eq!(
        RecordingPrograms::new().run("ls 'a b'\\;"),
        [["ls", "a b;"]]
    );
    assert!(CommandLine::parse("ls 'a b'\\;").is_uncertain);
    assert!(!CommandLine::parse("ls 'a b' c").is_uncertain);
}

/// bash expands the target of `>&` twice.
#[test]
fn quoted_command_in_a_target_is_doubtful() {
    let line = "ls >&'a$(rm x)'";
    let runs = RecordingPrograms::new().run(line);
    assert_eq!(runs, [vec!["rm", "x"], vec!["ls"]]);
    assert!(CommandLine::parse(line).is_uncertain);
    for line in ["ls >&'~'", "ls >&a", "ls <&63", "ls >&1-", "ls >&''"] {
        assert!(CommandLine::parse(line).is_uncertain, "{line}");
    }
}

/// bash reads `-` after `>&` as the end of the redirection.
#[test]
fn word_behind_a_closed_descriptor_is_doubtful() {
    let line = "2>& -rm cat b";
    assert_eq!(RecordingPrograms::new().run(line), [["rm", "cat", "b"]]);
    assert!(CommandLine::parse(line).is_uncertain);
    for line in ["ls 2>&1", "ls >&2", "ls 2>&-"] {
        assert!(!CommandLine::parse(line).is_uncertain, "{line}");
    }
}

#[test]
fn brace_without_a_blank_is_doubtful() {
    assert!(CommandLine::parse("{ls;}").is_uncertain);
    assert!(!CommandLine::parse("{ ls; }").is_uncertain);
}

/// Lines with arguments that the grammar parses as descriptors.
const DESCRIPTORS: [&str; 5] = [
    "ls 2147483648>&2",
    "ls -x2>/dev/null",
    "ls 0>&1",
    "cat a -x2>/dev/null",
    "ls a 3>&1",
];

#[test]
fn descriptors_are_found_by_the_oracle_once_they_are_not_doubtful() {
    let programs = RecordingPrograms::new();
    let unseen = |line: &str| programs.unseen(line, &CommandLine::parse(line));
    for line in DESCRIPTORS {
        assert!(unseen(line).is_empty(), "{line}");
    }
    super::command_line::IGNORES_DESCRIPTORS.set(true);
    let found = DESCRIPTORS.map(|line| !unseen(line).is_empty());
    super::command_line::IGNORES_DESCRIPTORS.set(false);
    assert_eq!(found, [true, true, true, true, false]);
}
