//! Checks that every test named in ARCHITECTURE.md and docs/security.md exists.

#[test]
fn every_invariant_names_a_test_that_exists() {
    let files = tidy::files();
    let page = files
        .iter()
        .find(|file| file.path == "ARCHITECTURE.md")
        .expect("ARCHITECTURE.md");
    let mut named = 0;
    // Rows of the invariants table: | invariant | `crate` | `test`, `test` |
    for row in page
        .text
        .lines()
        .filter(|line| line.starts_with("| ") && line.matches('|').count() == 4)
    {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let owner = cells[1].trim_matches('`');
        if !tidy::root().join("crates").join(owner).is_dir() {
            continue;
        }
        let tests: Vec<&str> = cells[2].split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "no test for: {}", cells[0]);
        for test in tests {
            named += 1;
            let defined = format!("fn {test}(");
            let folder = format!("crates/{owner}/");
            let found = files
                .iter()
                .any(|file| file.path.starts_with(&folder) && file.text.contains(&defined));
            assert!(found, "{owner} has no test {test} (for: {})", cells[0]);
        }
    }
    assert!(named >= 12, "only {named} tests are named");
}

/// Rows of docs/security.md end with the tests that prove the row: | … | … | `test`, `test` |
#[test]
fn every_promise_about_security_names_a_test_that_exists() {
    let files = tidy::files();
    let page = files
        .iter()
        .find(|file| file.path == "docs/security.md")
        .expect("docs/security.md");
    let mut named = 0;
    let mut has_tests = false;
    for row in page.text.lines() {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let last = cells.last().copied().unwrap_or_default();
        if !row.starts_with('|') {
            has_tests = false;
        } else if last == "test" {
            has_tests = true;
        } else if has_tests && !last.starts_with("---") {
            let tests: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
            assert!(!tests.is_empty(), "no test for: {}", cells[0]);
            for test in tests {
                named += 1;
                let defined = format!("fn {test}(");
                let found = files
                    .iter()
                    .any(|file| file.path.starts_with("crates/") && file.text.contains(&defined));
                assert!(found, "there is no test {test} (for: {})", cells[0]);
            }
        }
    }
    assert!(named >= 20, "only {named} tests are named");
}
