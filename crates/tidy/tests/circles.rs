//! Checks that the files of a crate do not import each other in large circles.

use std::collections::BTreeSet;

/// Maximum number of files that import each other.
const MAX_FILES: usize = 3;

/// Larger circles that are still to be opened, with their sizes. A size may only fall.
const TO_BE_OPENED: &[(&str, &[usize])] = &[("turnery-tools", &[8])];

#[test]
fn no_circle_of_imports_is_large() {
    let files = tidy::files();
    let crates: BTreeSet<&str> = files
        .iter()
        .filter_map(|file| file.path.strip_prefix("crates/")?.split('/').next())
        .collect();
    assert!(crates.len() > 8, "{crates:?}");
    let mut found = Vec::new();
    for name in crates {
        let circles = tidy::imports::circles(&files, &format!("crates/{name}/src/"));
        let known = TO_BE_OPENED.iter().find(|(known, _)| *known == name);
        let known = known.map_or(&[] as &[usize], |(_, sizes)| sizes);
        let large = circles.iter().filter(|circle| circle.len() > MAX_FILES);
        for (at, circle) in large.enumerate() {
            if circle.len() > known.get(at).copied().unwrap_or(MAX_FILES) {
                found.push(format!(
                    "{name}: {} files: {}",
                    circle.len(),
                    circle.join(", ")
                ));
            }
        }
        let count = circles
            .iter()
            .filter(|circle| circle.len() > MAX_FILES)
            .count();
        assert!(
            known.len() <= count,
            "{name}: a circle is open, remove it from TO_BE_OPENED"
        );
    }
    assert!(found.is_empty(), "{found:#?}");
}
