//! Finds the files whose tests run: modules that a `mod` line names, roots of crates and of their tests, and
//! cases of the suite.

use std::collections::BTreeSet;

/// Names of the modules that are declared, each with the folder of its crate.
#[derive(Default)]
pub(super) struct NamedModules(BTreeSet<(String, String)>);

impl NamedModules {
    /// Records the modules that a file declares.
    pub(super) fn add_file(&mut self, path: &str, text: &str) {
        for line in text.lines() {
            let line = line.trim();
            let words = line.split([' ', '(', ')', ';', '"']);
            let named = match line.split_once("mod ") {
                Some((_, name)) if line.ends_with(';') => name.strip_suffix(';'),
                _ if line.starts_with("#[path") => {
                    words.clone().find_map(|w| w.strip_suffix(".rs"))
                }
                _ => None,
            };
            if let Some(name) = named {
                self.0
                    .insert((crate_folder(path).to_owned(), name.to_owned()));
            }
        }
    }

    /// Returns true if the tests of the file are run: it is a root, a module of its name is declared anywhere in its
    /// crate, or it is a case of the suite.
    pub(super) fn is_tested(&self, path: &str) -> bool {
        if path.ends_with(".case") {
            return path.starts_with("conformance/cases/");
        }
        let owner = crate_folder(path);
        let inside = path[owner.len()..].trim_start_matches('/');
        let parts: Vec<&str> = inside.split('/').collect();
        let name = match parts[..] {
            ["src", "lib.rs" | "main.rs"]
            | ["tests" | "examples" | "benches", _]
            | ["tests" | "examples" | "benches", _, "main.rs"] => return true,
            [.., folder, "mod.rs"] => folder,
            [.., file] => file.strip_suffix(".rs").unwrap_or(file),
            [] => return false,
        };
        self.0.contains(&(owner.to_owned(), name.to_owned()))
    }
}

/// Returns the folder of the crate that a file belongs to: `crates/NAME`.
fn crate_folder(path: &str) -> &str {
    let end = path.match_indices('/').nth(1).map_or(0, |(at, _)| at);
    &path[..end]
}
