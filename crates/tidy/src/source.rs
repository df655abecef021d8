//! Tells the source of a crate from its tests.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Returns the module of a source file, without `crate`; `None` for tests.
pub(crate) fn module_path(path: &str) -> Option<Vec<String>> {
    let path = path.strip_suffix(".rs")?;
    let parts: Vec<String> = match path {
        "lib" | "main" => Vec::new(),
        path => path.split('/').map(str::to_owned).collect(),
    };
    let is_test =
        |part: &String| part == "tests" || part == "test_support" || part.ends_with("_tests");
    (!parts.iter().any(is_test)).then_some(parts)
}

/// Removes the items under `#[cfg(test)]` from a module; reports the names of removed modules.
pub(crate) fn without_test_items(
    items: TokenStream,
    mut on_test_module: impl FnMut(String),
) -> TokenStream {
    let mut kept = Vec::new();
    let mut is_skipping = false;
    let mut is_after_mod = false;
    for tree in items {
        let is_attribute =
            matches!(kept.last(), Some(TokenTree::Punct(punct)) if punct.as_char() == '#');
        if !is_skipping
            && is_attribute
            && let TokenTree::Group(group) = &tree
            && is_cfg_test(group.stream())
        {
            kept.pop();
            is_skipping = true;
        } else if is_skipping {
            if let TokenTree::Ident(name) = &tree {
                if is_after_mod {
                    on_test_module(name.to_string());
                }
                is_after_mod = name == "mod";
            }
            is_skipping = match &tree {
                TokenTree::Group(group) => group.delimiter() != Delimiter::Brace,
                TokenTree::Punct(punct) => punct.as_char() != ';',
                TokenTree::Ident(_) | TokenTree::Literal(_) => true,
            };
        } else {
            kept.push(tree);
        }
    }
    kept.into_iter().collect()
}

/// Returns true for the attributes `cfg(test)` and `cfg(all(test, ..))`.
fn is_cfg_test(attribute: TokenStream) -> bool {
    let text: String = attribute.into_iter().map(|tree| tree.to_string()).collect();
    let text = text.replace(' ', "");
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}
