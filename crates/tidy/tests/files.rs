//! Checks the size, shape and wording of the repository's files.

use std::path::Path;

/// Maximum length of a hand-written source file. Unit: lines.
const MAX_LINES: usize = 600;
/// Maximum median length of source files. Unit: lines.
const MAX_MEDIAN_LINES: usize = 200;

#[test]
fn no_source_file_is_too_long() {
    let mut sizes = Vec::new();
    for file in tidy::rust_files() {
        let lines = file.text.lines().count();
        assert!(
            lines <= MAX_LINES,
            "{} has {lines} lines; split it by what it is about",
            file.path
        );
        sizes.push(lines);
    }
    sizes.sort_unstable();
    let median = sizes[sizes.len() / 2];
    assert!(
        median <= MAX_MEDIAN_LINES,
        "the median file has {median} lines"
    );
}

#[test]
fn every_source_file_says_what_it_is_for() {
    for file in tidy::rust_files() {
        assert!(
            file.text.starts_with("//! "),
            "{} does not begin with `//! `",
            file.path
        );
    }
}

#[test]
fn no_file_has_a_generic_name() {
    for file in tidy::rust_files() {
        let stem = Path::new(&file.path)
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy();
        for word in [
            "util", "utils", "common", "helper", "helpers", "misc", "core", "manager", "impl",
        ] {
            assert_ne!(stem, word, "{} is called after nothing", file.path);
        }
    }
}

#[test]
fn lints_are_expected_not_allowed() {
    let allow = concat!("#[", "allow(");
    let allow_all = concat!("#![", "allow(");
    for file in tidy::rust_files() {
        assert!(!file.text.contains(allow), "{} allows a lint", file.path);
        assert!(
            !file.text.contains(allow_all),
            "{} allows a lint",
            file.path
        );
    }
}

#[test]
fn no_test_is_ignored() {
    let ignore = concat!("#[", "ignore");
    for file in tidy::rust_files() {
        assert!(!file.text.contains(ignore), "{} ignores a test", file.path);
    }
}

#[test]
fn nothing_names_a_machine_or_a_registry() {
    // Split, so that this file does not contain the words itself.
    let words = [
        concat!("crates", ".io"),
        concat!("py", "pi.org"),
        concat!("npm", "js."),
        concat!("deb.", "debian.org"),
        concat!("/root", "/"),
        concat!("/work", "/"),
    ];
    for file in tidy::files() {
        // Lock files are generated and name the registry they were created from.
        if file.path.ends_with(".lock") || file.path.ends_with("package-lock.json") {
            continue;
        }
        for word in words {
            assert!(!file.text.contains(word), "{} names {word}", file.path);
        }
    }
}
