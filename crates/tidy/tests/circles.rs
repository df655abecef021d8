//! Checks that the files of a crate do not import each other in large circles.

/// Maximum number of files that import each other.
const MAX_FILES: usize = 3;

#[test]
fn no_circle_of_imports_is_large() {
    let files = tidy::files();
    let mut found = Vec::new();
    for name in tidy::crate_names(&files) {
        let circles = tidy::imports::import_cycles(&files, &format!("crates/{name}/src/"));
        let large = circles.iter().filter(|circle| circle.len() > MAX_FILES);
        found.extend(large.map(|circle| {
            let (count, files) = (circle.len(), circle.join(", "));
            format!("{name}: {count} files: {files}")
        }));
    }
    assert!(found.is_empty(), "{found:#?}");
}
