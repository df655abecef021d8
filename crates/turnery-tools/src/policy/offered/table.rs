//! The programs themselves. No option names a program, a file to write or a place outside the roots: adding one means
//! having read its manual.

use super::{Offered, Operands, Value};

const NOTHING: Offered = Offered {
    words: &[],
    flags: &[],
    restraints: &[],
    values: &[],
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
    ("--exclude", Value::Package),
    ("--features", Value::Names),
    ("--jobs", Value::Number),
    ("--message-format", Value::Names),
    ("--package", Value::Package),
    ("--test", Value::Names),
    ("-F", Value::Names),
    ("-j", Value::Number),
    ("-p", Value::Package),
];

const fn cargo(
    words: &'static [&'static str],
    operands: Operands,
    trailing: Option<&'static Offered>,
) -> Offered {
    Offered {
        words,
        flags: CARGO_FLAGS,
        restraints: CARGO_RESTRAINTS,
        values: CARGO_VALUES,
        workspace_flags: &["--all", "--workspace"],
        operands,
        trailing,
        ..NOTHING
    }
}

/// Harness of Rust's tests.
const LIBTEST: Offered = Offered {
    flags: &[
        "--exact",
        "--ignored",
        "--include-ignored",
        "--nocapture",
        "--no-capture",
        "--quiet",
        "--show-output",
        "-q",
    ],
    restraints: &["--list"],
    values: &[("--color", Value::Names), ("--test-threads", Value::Number)],
    operands: Operands::Tests,
    ..NOTHING
};

const LINTS: Offered = Offered {
    flags: &["-Dwarnings"],
    values: &[
        ("-A", Value::Lint),
        ("-D", Value::Lint),
        ("-W", Value::Lint),
    ],
    ..NOTHING
};

const fn pytest(words: &'static [&'static str]) -> Offered {
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
            ("-k", Value::Expression),
            ("-m", Value::Expression),
        ],
        operands: Operands::TestFiles,
        ..NOTHING
    }
}

/// All of them.
pub(super) const ALL: &[Offered] = &[
    cargo(&["cargo", "build"], Operands::None, None),
    cargo(&["cargo", "check"], Operands::None, None),
    cargo(&["cargo", "clippy"], Operands::None, Some(&LINTS)),
    cargo(&["cargo", "nextest", "run"], Operands::Tests, None),
    cargo(&["cargo", "test"], Operands::Tests, Some(&LIBTEST)),
    Offered {
        words: &["git", "add"],
        flags: &["--all", "--update", "--verbose", "-A", "-u", "-v"],
        operands: Operands::Files,
        ..NOTHING
    },
    Offered {
        words: &["git", "commit"],
        // With paths it takes in files of the last commit, links on the way to them followed.
        flags: &["--allow-empty", "--quiet", "-q"],
        values: &[("-m", Value::Text)],
        // Without a message it starts an editor.
        required: Some("-m"),
        ..NOTHING
    },
    Offered {
        words: &["go", "test"],
        flags: &["-failfast", "-race", "-short", "-v"],
        values: &[
            ("-count", Value::Number),
            ("-run", Value::Names),
            ("-timeout", Value::Names),
        ],
        operands: Operands::GoPackages,
        ..NOTHING
    },
    Offered {
        words: &["make", "_"],
        flags: &["--keep-going", "--silent", "-B", "-k", "-s"],
        values: &[("-j", Value::Number)],
        ..NOTHING
    },
    pytest(&["pytest"]),
    pytest(&["python", "-m", "pytest"]),
    pytest(&["python3", "-m", "pytest"]),
    pytest(&["uv", "run", "pytest"]),
    pytest(&["poetry", "run", "pytest"]),
];
