//! The programs themselves. None of these options names a program, another file to write or a place outside the
//! roots: adding one means having read its manual.

use super::{After, Offered, Operands, Reach};

const NOTHING: Offered = Offered {
    words: &[],
    flags: "",
    valued: "",
    folder: None,
    packages: "",
    lints: "",
    reach: Reach::Named,
    texts: "",
    names: "",
    counts: "",
    long: &[],
    operands: Operands::None,
    after: After::Nothing,
};

const CARGO: &[&str] = &[
    "--all@",
    "--all-features",
    "--all-targets",
    "--bench=",
    "--benches",
    "--bin=",
    "--bins",
    "--color=",
    "--doc",
    "--example=",
    "--examples",
    "--exclude=@",
    "--features=",
    "--frozen",
    "--jobs=",
    "--keep-going",
    "--lib",
    "--locked",
    "--manifest-path=",
    "--message-format=",
    "--no-default-features",
    "--no-fail-fast",
    "--no-run",
    "--offline",
    "--package=@",
    "--profile=",
    "--quiet",
    "--release",
    "--test=",
    "--tests",
    "--verbose",
    "--workspace@",
];

const fn cargo(words: &'static [&'static str], operands: Operands, after: After) -> Offered {
    Offered {
        words,
        flags: "qrv",
        valued: "F",
        packages: "p",
        counts: "j",
        long: CARGO,
        operands,
        after,
        ..NOTHING
    }
}

/// The harness of Rust's tests.
const LIBTEST: Offered = Offered {
    flags: "q",
    long: &[
        "--color=",
        "--exact",
        "--ignored",
        "--include-ignored",
        "--list",
        "--nocapture",
        "--no-capture",
        "--quiet",
        "--show-output",
        "--skip=",
        "--test-threads=",
    ],
    operands: Operands::Tests,
    ..NOTHING
};

const RUSTFMT: Offered = Offered {
    flags: "lqv",
    long: &["--check", "--edition="],
    ..NOTHING
};

/// Levels of lints.
const LINTS: Offered = Offered {
    lints: "ADFW",
    ..NOTHING
};

const GO_BUILD: &[&str] = &["--p=", "--race", "--tags=", "--trimpath", "--v", "--x"];

const GO_TEST: &[&str] = &[
    "--bench=",
    "--benchmem",
    "--benchtime=",
    "--count=",
    "--cover",
    "--cpu=",
    "--failfast",
    "--json",
    "--p=",
    "--parallel=",
    "--race",
    "--run=",
    "--short",
    "--skip=",
    "--tags=",
    "--timeout=",
    "--v",
];

const fn go(words: &'static [&'static str], long: &'static [&'static str]) -> Offered {
    Offered {
        words,
        long,
        operands: Operands::Relative,
        ..NOTHING
    }
}

const fn pytest(words: &'static [&'static str]) -> Offered {
    Offered {
        words,
        flags: "lqsvx",
        valued: "nr",
        names: "km",
        long: &[
            "--co",
            "--collect-only",
            "--color=",
            "--durations=",
            "--exitfirst",
            "--failed-first",
            "--ff",
            "--last-failed",
            "--lf",
            "--maxfail=",
            "--no-header",
            "--quiet",
            "--stepwise",
            "--sw",
            "--tb=",
            "--verbose",
        ],
        operands: Operands::Inside,
        ..NOTHING
    }
}

/// A script of package.json takes arguments of its own, of which nothing is known. A workspace is a name that the
/// package.json of a folder above may give to any other folder.
const fn script(words: &'static [&'static str]) -> Offered {
    Offered {
        words,
        flags: "s",
        long: &["--if-present", "--silent"],
        ..NOTHING
    }
}

/// pnpm and yarn pass on to the script whatever follows its name, options of their own too.
const fn passing_on(words: &'static [&'static str]) -> Offered {
    Offered { words, ..NOTHING }
}

const fn install(words: &'static [&'static str]) -> Offered {
    Offered {
        words,
        long: &[
            "--frozen-lockfile",
            "--ignore-scripts",
            "--immutable",
            "--no-audit",
            "--no-fund",
            "--offline",
            "--prefer-offline",
            "--silent",
        ],
        ..NOTHING
    }
}

/// All of them.
pub(super) const ALL: &[Offered] = &[
    cargo(&["cargo", "bench"], Operands::Tests, After::Nothing),
    cargo(&["cargo", "build"], Operands::None, After::Nothing),
    cargo(&["cargo", "check"], Operands::None, After::Nothing),
    cargo(&["cargo", "clippy"], Operands::None, After::Program(&LINTS)),
    Offered {
        long: &[
            "--all-features",
            "--document-private-items",
            "--lib",
            "--locked",
            "--no-deps",
            "--offline",
            "--package=@",
            "--workspace@",
        ],
        ..cargo(&["cargo", "doc"], Operands::None, After::Nothing)
    },
    Offered {
        words: &["cargo", "fmt"],
        flags: "qv",
        // With `--all` and `-p` it changes packages that the project depends on, wherever they lie.
        long: &["--check", "--quiet", "--verbose"],
        after: After::Program(&RUSTFMT),
        ..NOTHING
    },
    cargo(
        &["cargo", "nextest", "run"],
        Operands::Tests,
        After::Nothing,
    ),
    cargo(
        &["cargo", "test"],
        Operands::Tests,
        After::Program(&LIBTEST),
    ),
    Offered {
        words: &["git", "add"],
        flags: "ANnuv",
        long: &[
            "--all",
            "--dry-run",
            "--intent-to-add",
            "--update",
            "--verbose",
        ],
        operands: Operands::Inside,
        after: After::Operands,
        reach: Reach::AllWithoutOperands,
        ..NOTHING
    },
    Offered {
        words: &["git", "commit"],
        // With paths it takes in files of the last commit, links on the way to them followed.
        flags: "aqsv",
        texts: "m",
        reach: Reach::AllWith("a"),
        long: &[
            "--all@",
            "--allow-empty",
            "--amend",
            "--dry-run",
            "--message=~",
            "--no-edit",
            "--quiet",
            "--signoff",
        ],
        ..NOTHING
    },
    Offered {
        words: &["git", "fetch"],
        flags: "pqtv",
        long: &[
            "--all",
            "--dry-run",
            "--no-recurse-submodules",
            "--no-tags",
            "--prune",
            "--quiet",
            "--tags",
            "--unshallow",
        ],
        operands: Operands::Names,
        ..NOTHING
    },
    Offered {
        words: &["git", "pull"],
        flags: "qv",
        long: &[
            "--ff-only",
            "--no-rebase",
            "--no-recurse-submodules",
            "--quiet",
            "--rebase",
        ],
        operands: Operands::Names,
        reach: Reach::All,
        ..NOTHING
    },
    Offered {
        words: &["git", "stash", "push"],
        flags: "kqu",
        texts: "m",
        long: &["--include-untracked", "--keep-index", "--message=~"],
        operands: Operands::Inside,
        after: After::Operands,
        reach: Reach::AllWithoutOperands,
        ..NOTHING
    },
    go(&["go", "build"], GO_BUILD),
    go(&["go", "test"], GO_TEST),
    go(&["go", "vet"], GO_BUILD),
    Offered {
        words: &["make", "_"],
        flags: "Bksw",
        folder: Some('C'),
        counts: "j",
        long: &["--keep-going", "--no-print-directory", "--silent"],
        ..NOTHING
    },
    install(&["npm", "ci"]),
    install(&["npm", "install"]),
    script(&["npm", "run", "_"]),
    script(&["npm", "test"]),
    install(&["pnpm", "install"]),
    passing_on(&["pnpm", "run", "_"]),
    passing_on(&["pnpm", "test"]),
    pytest(&["pytest"]),
    pytest(&["python", "-m", "pytest"]),
    install(&["yarn", "install"]),
    passing_on(&["yarn", "run", "_"]),
    passing_on(&["yarn", "test"]),
];
