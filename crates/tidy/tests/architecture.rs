//! ARCHITECTURE.md: every test that it names is there.

#[test]
fn every_invariant_names_a_test_that_exists() {
    let files = tidy::files();
    let page = files
        .iter()
        .find(|file| file.path == "ARCHITECTURE.md")
        .expect("ARCHITECTURE.md");
    let mut named = 0;
    // Rows of the invariants table: | what must hold | `crate` | `test`, `test` |
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
