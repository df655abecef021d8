//! The programs themselves. No option names a program, a file to write or a place outside the roots: adding one means
//! having read its manual.

use super::{Offered, Operands, Value};

const NOTHING: Offered = Offered {
    words: &[],
    flags: &[],
    values: &[],
    workspace_flags: &[],
    operands: Operands::None,
    trailing: None,
};

const CARGO_FLAGS: &[&str] = &[
    "--all-features",
    "--all-targets",
    "--benches",
    "--bins",
    "--doc",
    "--examples",
    "--frozen",
    "--keep-going",
    "--lib",
    "--locked",
    "--no-default-features",
    "--no-fail-fast",
    "--no-run",
    "--offline",
    "--quiet",
    "--release",
    "--tests",
    "--verbose",
    "-q",
    "-r",
    "-v",
    "-vv",
];

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
    ("--profile", Value::Names),
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
        values: CARGO_VALUES,
        workspace_flags: &["--all", "--workspace"],
        operands,
        trailing,
    }
}

/// Harness of Rust's tests.
const LIBTEST: Offered = Offered {
    flags: &[
        "--exact",
        "--ignored",
        "--include-ignored",
        "--list",
        "--nocapture",
        "--no-capture",
        "--quiet",
        "--show-output",
        "-q",
    ],
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

const RUSTFMT: Offered = Offered {
    flags: &["--check"],
    ..NOTHING
};

const fn go(words: &'static [&'static str], values: &'static [(&'static str, Value)]) -> Offered {
    Offered {
        words,
        flags: &["-failfast", "-race", "-short", "-v"],
        values,
        operands: Operands::GoPackages,
        ..NOTHING
    }
}

const fn pytest(words: &'static [&'static str]) -> Offered {
    Offered {
        words,
        flags: &[
            "--collect-only",
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
        values: &[
            ("--durations", Value::Number),
            ("--maxfail", Value::Number),
            ("--tb", Value::Names),
            ("-k", Value::Expression),
            ("-m", Value::Expression),
            ("-n", Value::Number),
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
    Offered {
        words: &["cargo", "fmt"],
        // With `--all` and `-p` it changes packages that the project depends on, wherever they lie.
        flags: &["--check", "--quiet", "-q"],
        trailing: Some(&RUSTFMT),
        ..NOTHING
    },
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
        flags: &["--allow-empty", "--amend", "--no-edit", "--quiet", "-q"],
        values: &[("--message", Value::Text), ("-m", Value::Text)],
        ..NOTHING
    },
    go(&["go", "build"], &[]),
    go(
        &["go", "test"],
        &[
            ("-count", Value::Number),
            ("-run", Value::Names),
            ("-timeout", Value::Names),
        ],
    ),
    go(&["go", "vet"], &[]),
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
