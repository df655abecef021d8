//! Finds the types that a crate declares: structs, enums, unions, traits and aliases.

use crate::{
    RepoFile,
    source::{module_path, without_test_items},
};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};

/// Keywords that declare a type.
const KEYWORDS: [&str; 5] = ["struct", "enum", "union", "trait", "type"];

/// Returns the names of types that several files of a crate declare, with these files. `folder` is the crate's `src`,
/// for example `crates/tidy/src/`. Associated types, types of function bodies and of tests do not count; a type that a
/// file declares once per operating system is one type.
///
/// # Panics
/// Panics if a file is not Rust.
#[must_use]
pub fn repeated_names(files: &[RepoFile], folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut test_modules = BTreeSet::new();
    let mut declared: Vec<(Vec<String>, &str, String)> = Vec::new();
    for file in files {
        let inside = file.path.strip_prefix(folder);
        let Some((path, module)) = inside.and_then(|path| Some((path, module_path(path)?))) else {
            continue;
        };
        let text = file.text.parse().expect("Rust");
        let items = without_test_items(text, |name| {
            test_modules.insert([module.as_slice(), &[name]].concat());
        });
        let mut names = Vec::new();
        add_types(items, &mut names);
        declared.extend(names.into_iter().map(|name| (module.clone(), path, name)));
    }
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, path, name) in declared {
        let is_test = (1..=module.len()).any(|depth| test_modules.contains(&module[..depth]));
        if !is_test {
            places.entry(name).or_default().insert(path.to_owned());
        }
    }
    places.retain(|_, files| files.len() > 1);
    places
}

/// Adds the names of the types that a module and its inline modules declare.
fn add_types(items: TokenStream, names: &mut Vec<String>) {
    let mut before: [Option<String>; 2] = [None, None];
    for tree in items {
        let mut word = None;
        match tree {
            TokenTree::Ident(name) => {
                let name = name.to_string();
                let [_, keyword] = &before;
                if keyword.as_deref().is_some_and(|it| KEYWORDS.contains(&it)) {
                    names.push(name.clone());
                }
                word = Some(name);
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                if before[0].as_deref() == Some("mod") {
                    add_types(group.stream(), names);
                }
            }
            TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        let [_, last] = before;
        before = [last, word];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_modules_are_found_and_those_of_tests_and_bodies_are_not() {
        let file = |path: &str, text: &str| RepoFile {
            path: format!("src/{path}"),
            text: text.to_owned(),
        };
        let files = [
            file(
                "lib.rs",
                "mod a;\n#[cfg(test)]\nmod b;\n#[cfg(test)]\nmod tests { struct A; }\nmod c { pub(crate) struct C<'a>(&'a u8); }\n\
                 pub trait Named { type A; }\nimpl Named for u8 { type A = u8; }\nfn f() { struct A; struct D; }\nenum E { A, C }\n\
                 #[cfg(unix)]\nstruct F;\n#[cfg(not(unix))]\nstruct F;",
            ),
            file(
                "a.rs",
                "type A = u8;\nunion D { a: u8 }\npub unsafe trait E {}\n#[cfg(not(test))]\nstruct C;",
            ),
            file("b.rs", "struct A;\nstruct E;"),
            file("a/tests.rs", "struct A;"),
        ];
        let found = repeated_names(&files, "src/");
        let found: Vec<(&str, usize)> = found
            .iter()
            .map(|(name, files)| (name.as_str(), files.len()))
            .collect();
        assert_eq!(found, [("C", 2), ("E", 2)]);
    }
}
