//! Checks that the files of a crate do not import each other in large cycles.

/// Maximum number of files that import each other.
const MAX_FILES: usize = 3;

#[test]
fn no_import_cycle_is_large() {
    let files = tidy::files();
    let mut found = Vec::new();
    for name in tidy::crate_names(&files) {
        let cycles = tidy::imports::import_cycles(&files, &format!("crates/{name}/src/"));
        let large = cycles.iter().filter(|cycle| cycle.len() > MAX_FILES);
        found.extend(large.map(|cycle| {
            let (count, files) = (cycle.len(), cycle.join(", "));
            format!("{name}: {count} files: {files}")
        }));
    }
    assert!(found.is_empty(), "{found:#?}");
}
