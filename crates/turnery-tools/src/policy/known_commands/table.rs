//! Lists the known commands. No option names a program, an output file or a path outside the roots. Read the
//! manual before adding an option.

use super::{KnownCommand, KnownOperands, KnownValue};

const EMPTY: KnownCommand = KnownCommand {
    words: &[],
    flags: &[],
    restraints: &[],
    valued_options: &[],
    restraining_values: &[],
    workspace_flags: &[],
    operands: KnownOperands::None,
    required_option: None,
    trailing_args: None,
};

const CARGO_FLAGS: &[&str] = &[
    "--all-features",
    "--all-targets",
    "--benches",
    "--bins",
    "--doc",
    "--examples",
    "--keep-going",
    "--lib",
    "--no-default-features",
    "--no-fail-fast",
    "--quiet",
    "--release",
    "--tests",
    "--verbose",
    "-q",
    "-r",
    "-v",
    "-vv",
];

const CARGO_RESTRAINTS: &[&str] = &["--frozen", "--locked", "--no-run", "--offline"];

const CARGO_VALUES: &[(&str, KnownValue)] = &[
    ("--bench", KnownValue::Names),
    ("--bin", KnownValue::Names),
    ("--color", KnownValue::Names),
    ("--example", KnownValue::Names),
    ("--features", KnownValue::Names),
    ("--jobs", KnownValue::Number),
    ("--message-format", KnownValue::Names),
    ("--package", KnownValue::Package),
    ("--test", KnownValue::Names),
    ("-F", KnownValue::Names),
    ("-j", KnownValue::Number),
    ("-p", KnownValue::Package),
];

const fn cargo_command(
    words: &'static [&'static str],
    operands: KnownOperands,
    trailing: Option<&'static KnownCommand>,
) -> KnownCommand {
    KnownCommand {
        words,
        flags: CARGO_FLAGS,
        restraints: CARGO_RESTRAINTS,
        valued_options: CARGO_VALUES,
        restraining_values: &[("--exclude", KnownValue::Package)],
        workspace_flags: &["--all", "--workspace"],
        operands,
        trailing_args: trailing,
        ..EMPTY
    }
}

/// Arguments of Rust's test harness.
const LIBTEST_ARGS: KnownCommand = KnownCommand {
    flags: &[
        "--exact",
        "--nocapture",
        "--no-capture",
        "--quiet",
        "--show-output",
        "-q",
    ],
    restraints: &["--list"],
    valued_options: &[
        ("--color", KnownValue::Names),
        ("--test-threads", KnownValue::Number),
    ],
    operands: KnownOperands::Tests,
    ..EMPTY
};

const CLIPPY_LINT_ARGS: KnownCommand = KnownCommand {
    flags: &["-Dwarnings"],
    valued_options: &[
        ("-A", KnownValue::Lint),
        ("-D", KnownValue::Lint),
        ("-W", KnownValue::Lint),
    ],
    ..EMPTY
};

const fn pytest_command(words: &'static [&'static str]) -> KnownCommand {
    KnownCommand {
        words,
        flags: &[
            "--exitfirst",
            "--failed-first",
            "--ff",
            "--last-failed",
            "--lf",
            "--quiet",
            "--verbose",
            "-l",
            "-q",
            "-s",
            "-v",
            "-vv",
            "-x",
        ],
        restraints: &["--collect-only"],
        valued_options: &[
            ("--durations", KnownValue::Number),
            ("--maxfail", KnownValue::Number),
            ("--tb", KnownValue::Names),
        ],
        // `-m` and `-k` replace those of the project's settings, which may leave tests out.
        operands: KnownOperands::TestFiles,
        ..EMPTY
    }
}

/// All known commands.
pub(super) const KNOWN_COMMANDS: &[KnownCommand] = &[
    cargo_command(&["cargo", "build"], KnownOperands::None, None),
    cargo_command(&["cargo", "check"], KnownOperands::None, None),
    cargo_command(
        &["cargo", "clippy"],
        KnownOperands::None,
        Some(&CLIPPY_LINT_ARGS),
    ),
    cargo_command(&["cargo", "nextest", "run"], KnownOperands::Tests, None),
    cargo_command(
        &["cargo", "test"],
        KnownOperands::Tests,
        Some(&LIBTEST_ARGS),
    ),
    KnownCommand {
        words: &["git", "add"],
        flags: &["--all", "--verbose", "-A", "-v"],
        restraints: &["--update", "-u"],
        operands: KnownOperands::Files,
        ..EMPTY
    },
    KnownCommand {
        words: &["git", "commit"],
        // With paths, git reads files of the last commit from the work tree, following links on the way to
        // them.
        flags: &["--allow-empty", "--quiet", "-q"],
        valued_options: &[("-m", KnownValue::Text)],
        // Without a message, git starts an editor.
        required_option: Some("-m"),
        ..EMPTY
    },
    KnownCommand {
        words: &["go", "test"],
        flags: &["-failfast", "-race", "-v"],
        restraints: &["-short"],
        valued_options: &[
            ("-count", KnownValue::Number),
            ("-timeout", KnownValue::Names),
        ],
        restraining_values: &[("-run", KnownValue::Names)],
        operands: KnownOperands::GoPackages,
        ..EMPTY
    },
    KnownCommand {
        words: &["make", "_"],
        // `-k` and `-j` go on where a target has failed.
        flags: &["--silent", "-s"],
        ..EMPTY
    },
    pytest_command(&["pytest"]),
    pytest_command(&["python", "-m", "pytest"]),
    pytest_command(&["python3", "-m", "pytest"]),
    pytest_command(&["uv", "run", "pytest"]),
    pytest_command(&["poetry", "run", "pytest"]),
];
