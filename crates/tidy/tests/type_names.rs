//! Checks that no two types of a crate have the same name.

use std::collections::{BTreeMap, BTreeSet};

/// Names that two types of a crate still share. A name goes once it is no longer needed.
const TO_BE_RENAMED: &[(&str, &[&str])] = &[];

#[test]
fn types_of_a_crate_have_distinct_names() {
    let files = tidy::rust_files();
    let crates: BTreeSet<&str> = files
        .iter()
        .filter_map(|file| file.path.strip_prefix("crates/")?.split('/').next())
        .collect();
    assert!(crates.len() > 8, "{crates:?}");
    let allowed: BTreeMap<&str, &[&str]> = TO_BE_RENAMED.iter().copied().collect();
    let mut errors = Vec::new();
    for name in crates {
        let allowed = allowed.get(name).copied().unwrap_or_default();
        let repeated = tidy::types::repeated_names(&files, &format!("crates/{name}/src/"));
        for (repeated, files) in &repeated {
            if !allowed.contains(&repeated.as_str()) {
                errors.push(format!("{name}: {repeated} in {files:?}"));
            }
        }
        for allowed in allowed {
            if !repeated.contains_key(*allowed) {
                errors.push(format!(
                    "{name}: {allowed} is distinct, remove it from TO_BE_RENAMED"
                ));
            }
        }
    }
    assert!(errors.is_empty(), "{errors:#?}");
}
