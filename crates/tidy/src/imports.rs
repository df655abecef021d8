//! Finds import cycles among the files of a crate.
//!
//! A file imports another if it names an item by a path that leads there; re-exports are followed to the file that
//! defines the item. Paths are resolved by their text: macros are not expanded, but paths inside their calls and
//! definitions count. Test modules are left out.

use crate::{
    RepoFile,
    source::{module_path, without_test_items},
};
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};

/// Path of a module, without `crate`.
type ModulePath = Vec<String>;

/// Maximum number of re-exports that are followed for one path.
const MAX_REEXPORTS: usize = 6;

/// Imports of one file.
#[derive(Default)]
struct Imports {
    /// Paths as written.
    paths: Vec<Vec<String>>,
    /// Imported names with their paths.
    names: BTreeMap<String, Vec<String>>,
}

/// Returns the groups of files of a crate that import each other, directly or not; the largest first. `folder` is the
/// crate's `src`, for example `crates/tidy/src/`.
#[must_use]
pub fn import_cycles(files: &[RepoFile], folder: &str) -> Vec<Vec<String>> {
    let mut modules: BTreeMap<ModulePath, Imports> = BTreeMap::new();
    for file in files {
        let Some(path) = file.path.strip_prefix(folder) else {
            continue;
        };
        if let Some(module) = module_path(path) {
            let imports = Imports::of(&file.text);
            modules.entry(module).or_insert(imports);
        }
    }
    let edges: BTreeMap<&ModulePath, BTreeSet<ModulePath>> = modules
        .iter()
        .map(|(module, imports)| {
            let targets = imports
                .paths
                .iter()
                .filter_map(|path| resolve(&modules, module, path, 0));
            (module, targets.filter(|target| target != module).collect())
        })
        .collect();
    let reached: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> = edges
        .keys()
        .map(|module| (*module, reachable(&edges, module)))
        .collect();
    let mut groups: BTreeSet<Vec<&ModulePath>> = BTreeSet::new();
    for (module, targets) in &reached {
        let is_mutual =
            |other: &&&ModulePath| reached.get(**other).is_some_and(|it| it.contains(module));
        let group: Vec<&ModulePath> = targets.iter().filter(is_mutual).copied().collect();
        if group.len() > 1 {
            groups.insert(group);
        }
    }
    let name = |module: &ModulePath| match module.is_empty() {
        true => "lib".to_owned(),
        false => module.join("/"),
    };
    let named = groups
        .into_iter()
        .map(|group| group.into_iter().map(name).collect());
    let mut named: Vec<Vec<String>> = named.collect();
    named.sort_by_key(|group| std::cmp::Reverse(group.len()));
    named
}

impl Imports {
    fn of(text: &str) -> Self {
        let tokens = tokens(text);
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let mut imports = Self::default();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let next = tokens.get(at + 1).copied();
            let before = at.checked_sub(1).and_then(|at| tokens.get(at)).copied();
            if *token == "use" {
                at = imports.add_tree(&tokens, at + 1, &[]);
            } else if is_name(token) && next == Some("::") && before != Some("::") {
                let mut path = vec![(*token).to_owned()];
                at += 1;
                while tokens.get(at) == Some(&"::")
                    && let Some(part) = tokens.get(at + 1).filter(|part| is_name(part))
                {
                    path.push((*part).to_owned());
                    at += 2;
                }
                imports.paths.push(path);
            } else {
                at += 1;
            }
        }
        imports
    }

    /// Adds a tree of imports that begins at a token; returns the position behind it.
    fn add_tree(&mut self, tokens: &[&str], mut at: usize, prefix: &[String]) -> usize {
        let mut path = prefix.to_vec();
        while let Some(token) = tokens.get(at) {
            match *token {
                "{" => {
                    at += 1;
                    while tokens.get(at).is_some_and(|token| *token != "}") {
                        at = match tokens.get(at) {
                            Some(&",") => at + 1,
                            _ => self.add_tree(tokens, at, &path),
                        };
                    }
                    return at + 1;
                }
                "::" => at += 1,
                "as" => {
                    self.add_name(tokens.get(at + 1).copied(), path);
                    return at + 2;
                }
                token if is_name(token) || token == "*" => {
                    path.push(token.to_owned());
                    at += 1;
                }
                _ => break,
            }
        }
        self.add_name(None, path);
        at
    }

    fn add_name(&mut self, alias: Option<&str>, mut path: Vec<String>) {
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if let Some(name) = alias.or(path.last().map(String::as_str)) {
            self.names.insert(name.to_owned(), path.clone());
            self.paths.push(path);
        }
    }
}

/// Returns the module that defines what a path of `module` names; `None` outside the crate.
fn resolve(
    modules: &BTreeMap<ModulePath, Imports>,
    module: &ModulePath,
    path: &[String],
    depth: usize,
) -> Option<ModulePath> {
    let (first, mut rest) = path.split_first()?;
    let mut found = match first.as_str() {
        "crate" => Vec::new(),
        "self" => module.clone(),
        "super" => {
            let mut above = module.clone();
            above.pop()?;
            while let Some((next, after)) = rest.split_first()
                && next == "super"
            {
                above.pop()?;
                rest = after;
            }
            above
        }
        name => {
            let mut child = module.clone();
            child.push(name.to_owned());
            if modules.contains_key(&child) {
                child
            } else {
                let import = modules.get(module)?.names.get(name)?;
                let is_own = import
                    .first()
                    .is_some_and(|it| matches!(it.as_str(), "crate" | "self" | "super"));
                if !is_own || depth >= MAX_REEXPORTS {
                    return None;
                }
                let whole: Vec<String> = import.iter().chain(rest).cloned().collect();
                return resolve(modules, module, &whole, depth + 1);
            }
        }
    };
    while let Some((next, after)) = rest.split_first() {
        let mut child = found.clone();
        child.push(next.clone());
        if modules.contains_key(&child) {
            (found, rest) = (child, after);
            continue;
        }
        let import = modules.get(&found)?.names.get(next);
        if let Some(import) = import.filter(|_| depth < MAX_REEXPORTS && &found != module) {
            let whole: Vec<String> = import.iter().chain(after).cloned().collect();
            if let Some(target) = resolve(modules, &found, &whole, depth + 1) {
                return Some(target);
            }
        }
        break;
    }
    modules.contains_key(&found).then_some(found)
}

/// Returns the modules that can be reached from a module by imports.
fn reachable<'a>(
    edges: &'a BTreeMap<&'a ModulePath, BTreeSet<ModulePath>>,
    from: &ModulePath,
) -> BTreeSet<&'a ModulePath> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&ModulePath> = edges.get(from).into_iter().flatten().collect();
    while let Some(module) = open.pop() {
        if reached.insert(module) {
            open.extend(edges.get(module).into_iter().flatten());
        }
    }
    reached
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Splits source text into names, `::` and single characters, without comments, literals and items for tests.
///
/// # Panics
/// Panics if the text is not Rust.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let items = without_test_items(text.parse().expect("Rust"), |_| {});
    flatten(items, &mut tokens);
    tokens
}

fn flatten(stream: TokenStream, tokens: &mut Vec<String>) {
    let mut is_joint_colon = false;
    for tree in stream {
        let is_colon = matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == ':');
        let is_second = is_joint_colon && is_colon;
        is_joint_colon = false;
        match tree {
            TokenTree::Group(group) => {
                let is_braced = group.delimiter() == Delimiter::Brace;
                tokens.push(if is_braced { "{" } else { "(" }.to_owned());
                flatten(group.stream(), tokens);
                tokens.push(if is_braced { "}" } else { ")" }.to_owned());
            }
            TokenTree::Punct(_) if is_second => {
                *tokens.last_mut().expect("a colon") = "::".to_owned()
            }
            TokenTree::Punct(punct) => {
                is_joint_colon = is_colon && punct.spacing() == Spacing::Joint;
                tokens.push(punct.as_char().to_string());
            }
            TokenTree::Ident(name) => tokens.push(name.to_string()),
            // Keeps what is before and after it apart.
            TokenTree::Literal(_) => tokens.push("\"".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let file = |(path, text): &(&str, &str)| RepoFile {
            path: format!("src/{path}"),
            text: (*text).to_owned(),
        };
        import_cycles(&files.iter().map(file).collect::<Vec<_>>(), "src/")
    }

    #[test]
    fn cycle_through_a_re_export_is_found() {
        let files = [
            (
                "lib.rs",
                "mod a;\nmod b;\nmod c;\npub use b::B;\npub use c::{C, d::D as E};\n",
            ),
            ("a.rs", "use crate::B;\npub struct A;\n"),
            ("b.rs", "use super::a;\npub struct B(a::A);\n"),
            ("c.rs", "mod d;\npub struct C;\n"),
            ("c/d.rs", "pub struct D;\n"),
        ];
        assert_eq!(cycles_of(&files), [["a", "b"]]);
    }

    #[test]
    fn test_modules_comments_and_strings_import_nothing() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a.rs", "use crate::b::B;\npub struct A;\n"),
            (
                "b.rs",
                "// crate::a::A\nconst X: &str = r#\"\"crate::a::A\"#;\nconst Y: char = '\"';\npub struct B;\n\
                 #[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n",
            ),
        ];
        assert_eq!(cycles_of(&files), [] as [Vec<String>; 0]);
        let mut files = files;
        files[2].1 = "const Y: char = '\\'';\nfn b<'a>(_: &'a crate::a::A) {}\n";
        assert_eq!(cycles_of(&files), [["a", "b"]]);
    }
}
