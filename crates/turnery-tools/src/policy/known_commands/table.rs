//! Lists the known commands. No option names a program, an output file or a path outside the roots. Read the
//! manual before adding an option.

use super::{Offered, Operands, Value};

const EMPTY: Offered = Offered {
    words: &[],
    flags: &[],
    restraints: &[],
    values: &[],
    restraining_values: &[],
    workspace_flags: &[],
    operands: Operands::None,
    required: None,
    trailing: None,
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

const CARGO_VALUES: &[(&str, Value)] = &[
    ("--bench", Value::Names),
    ("--bin", Value::Names),
    ("--color", Value::Names),
    ("--example", Value::Names),
    ("--features", Value::Names),
    ("--jobs", Value::Number),
    ("--message-format", Value::Names),
    ("--package", Value::Package),
    ("--test", Value::Names),
    ("-F", Value::Names),
    ("-j", Value::Number),
    ("-p", Value::Package),
];

const fn cargo_command(
    words: &'static [&'static str],
    operands: Operands,
    trailing: Option<&'static Offered>,
) -> Offered {
    Offered {
        words,
        flags: CARGO_FLAGS,
        restraints: CARGO_RESTRAINTS,
        values: CARGO_VALUES,
        restraining_values: &[("--exclude", Value::Package)],
        workspace_flags: &["--all", "--workspace"],
        operands,
        trailing,
        ..EMPTY
    }
}

/// Arguments of Rust's test harness.
const LIBTEST_ARGS: Offered = Offered {
    flags: &[
        "--exact",
        "--nocapture",
        "--no-capture",
        "--quiet",
        "--show-output",
        "-q",
    ],
    restraints: &["--list"],
    values: &[("--color", Value::Names), ("--test-threads", Value::Number)],
    operands: Operands::Tests,
    ..EMPTY
};

const CLIPPY_LINT_ARGS: Offered = Offered {
    flags: &["-Dwarnings"],
    values: &[
        ("-A", Value::Lint),
        ("-D", Value::Lint),
        ("-W", Value::Lint),
    ],
    ..EMPTY
};

const fn pytest_command(words: &'static [&'static str]) -> Offered {
    Offered {
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
        values: &[
            ("--durations", Value::Number),
            ("--maxfail", Value::Number),
            ("--tb", Value::Names),
        ],
        // `-m` and `-k` replace those of the project's settings, which may leave tests out.
        operands: Operands::TestFiles,
        ..EMPTY
    }
}

/// All known commands.
pub(super) const KNOWN_COMMANDS: &[Offered] = &[
    cargo_command(&["cargo", "build"], Operands::None, None),
    cargo_command(&["cargo", "check"], Operands::None, None),
    cargo_command(
        &["cargo", "clippy"],
        Operands::None,
        Some(&CLIPPY_LINT_ARGS),
    ),
    cargo_command(&["cargo", "nextest", "run"], Operands::Tests, None),
    cargo_command(&["cargo", "test"], Operands::Tests, Some(&LIBTEST_ARGS)),
    Offered {
        words: &["git", "add"],
        flags: &["--all", "--update", "--verbose", "-A", "-u", "-v"],
        operands: Operands::Files,
        ..EMPTY
    },
    Offered {
        words: &["git", "commit"],
        // With paths, git reads files of the last commit from the work tree, following links on the way to
        // them.
        flags: &["--allow-empty", "--quiet", "-q"],
        values: &[("-m", Value::Text)],
        // Without a message, git starts an editor.
        required: Some("-m"),
        ..EMPTY
    },
    Offered {
        words: &["go", "test"],
        flags: &["-failfast", "-race", "-v"],
        restraints: &["-short"],
        values: &[("-count", Value::Number), ("-timeout", Value::Names)],
        restraining_values: &[("-run", Value::Names)],
        operands: Operands::GoPackages,
        ..EMPTY
    },
    Offered {
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
