//! Checks that no two types of a crate have the same name.

#[test]
fn types_of_a_crate_have_distinct_names() {
    let files = tidy::rust_files();
    let mut errors = Vec::new();
    for name in tidy::crate_names(&files) {
        let repeated = tidy::types::repeated_names(&files, &format!("crates/{name}/src/"));
        for (repeated, files) in &repeated {
            errors.push(format!("{name}: {repeated} in {files:?}"));
        }
    }
    assert!(errors.is_empty(), "{errors:#?}");
}
