//! Project: which tools build and test what lies in a folder.

use super::intent::Job;

/// What the files at the top say about a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Project {
    Cargo,
    Node,
    Go,
    Python,
    Make,
    CMake,
}

impl Project {
    /// From a listing of the top folder.
    pub(super) fn of(listing: &str) -> Option<Self> {
        let has = |name: &str| {
            listing.lines().any(|line| {
                line.split_whitespace()
                    .any(|word| word.trim_start_matches("./").trim_end_matches('/') == name)
            })
        };
        let any = |names: &[&str]| names.iter().any(|name| has(name));
        if has("Cargo.toml") {
            Some(Self::Cargo)
        } else if has("package.json") {
            Some(Self::Node)
        } else if has("go.mod") {
            Some(Self::Go)
        } else if any(&[
            "pyproject.toml",
            "setup.py",
            "pytest.ini",
            "tox.ini",
            "setup.cfg",
        ]) {
            Some(Self::Python)
        } else if any(&["Makefile", "makefile", "GNUmakefile"]) {
            Some(Self::Make)
        } else if has("CMakeLists.txt") {
            Some(Self::CMake)
        } else {
            None
        }
    }

    /// The file that says so.
    pub(super) fn manifest(self) -> &'static str {
        match self {
            Self::Cargo => "Cargo.toml",
            Self::Node => "package.json",
            Self::Go => "go.mod",
            Self::Python => "pyproject.toml",
            Self::Make => "Makefile",
            Self::CMake => "CMakeLists.txt",
        }
    }

    /// For people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cargo => "a Rust project (Cargo)",
            Self::Node => "a JavaScript or TypeScript project (npm)",
            Self::Go => "a Go module",
            Self::Python => "a Python project",
            Self::Make => "a project with a Makefile",
            Self::CMake => "a CMake project",
        }
    }

    /// The command line for a job.
    pub(super) fn command(self, job: &Job) -> String {
        let words = match (self, job) {
            (_, Job::Command(command)) => command,
            (Self::Cargo, Job::Tests(_)) => "cargo test --no-fail-fast",
            (Self::Cargo, Job::Build) => "cargo build",
            (Self::Cargo, Job::Lint) => "cargo clippy --all-targets",
            (Self::Node, Job::Tests(_)) => "npm test",
            (Self::Node, Job::Build) => "npm run build",
            (Self::Node, Job::Lint) => "npm run lint",
            (Self::Go, Job::Tests(_)) => "go test ./...",
            (Self::Go, Job::Build) => "go build ./...",
            (Self::Go, Job::Lint) => "go vet ./...",
            (Self::Python, Job::Tests(_)) => "python3 -m pytest -q",
            (Self::Python, Job::Build) => "python3 -m build",
            (Self::Python, Job::Lint) => "ruff check .",
            (Self::Make, Job::Tests(_)) => "make test",
            (Self::Make, Job::Build) => "make",
            (Self::Make, Job::Lint) => "make lint",
            (Self::CMake, Job::Build) => "cmake -S . -B build && cmake --build build",
            (Self::CMake, Job::Tests(_)) => "ctest --test-dir build --output-on-failure",
            (Self::CMake, Job::Lint) => "cmake --build build --target lint",
        };
        let filter = match job {
            Job::Tests(Some(filter)) => filter,
            Job::Tests(None) | Job::Build | Job::Lint | Job::Command(_) => return words.to_owned(),
        };
        match self {
            Self::Cargo => format!("{words} {filter}"),
            Self::Node => format!("{words} -- {filter}"),
            Self::Go => format!("{words} -run {filter}"),
            Self::Python => format!("{words} -k {filter}"),
            Self::Make => words.to_owned(),
            Self::CMake => format!("{words} -R {filter}"),
        }
    }
}
