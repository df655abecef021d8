//! Builds the names of server tools that the model uses: `mcp__SERVER__TOOL`.
//!
//! All model APIs accept letters, digits, `_` and `-`, at most 64 of them. A name that has to be changed for
//! that gets a hash of the original as a suffix, so that two tools never share a name, and a tool has the
//! same name in every process regardless of the other servers.

use std::collections::HashSet;

/// Prefix of all names; no built-in tool has it.
const TOOL_PREFIX: &str = "mcp__";
/// Limit of the strictest model API.
const MAX_NAME_LEN: usize = 64;
/// Maximum length of the server part.
const MAX_SLUG_LEN: usize = 24;

/// Returns a server's name for use in tool names. Contains no `__` and does not end with `_`, so that its end
/// is unambiguous. `taken`: names of the session's other servers.
pub(super) fn server_slug(name: &str, taken: &mut HashSet<String>) -> String {
    let mut plain = replace_invalid_chars(name);
    let is_plain = |part: &str| !part.is_empty() && !part.contains("__") && !part.ends_with('_');
    if plain == name && name.len() <= MAX_SLUG_LEN && is_plain(name) {
        return make_unique(plain, MAX_SLUG_LEN, taken);
    }
    while plain.contains("__") {
        plain = plain.replace("__", "_");
    }
    make_unique(
        with_hash_suffix(&plain, name, MAX_SLUG_LEN),
        MAX_SLUG_LEN,
        taken,
    )
}

/// Returns the name of a tool. `taken`: names of the server's other tools.
pub(super) fn tool_name(server: &str, name: &str, taken: &mut HashSet<String>) -> String {
    let plain = replace_invalid_chars(name);
    let whole = format!("{}__{plain}", server_pattern(server));
    let name = match plain == name && !name.is_empty() && whole.len() <= MAX_NAME_LEN {
        true => whole,
        false => with_hash_suffix(&whole, name, MAX_NAME_LEN),
    };
    make_unique(name, MAX_NAME_LEN, taken)
}

/// Returns the rule pattern that covers all tools of a server.
pub(super) fn server_pattern(server: &str) -> String {
    format!("{TOOL_PREFIX}{server}")
}

/// Returns true if a tool called `name` belongs to this server.
pub(super) fn is_tool_of(name: &str, server: &str) -> bool {
    name.strip_prefix(TOOL_PREFIX)
        .and_then(|rest| rest.strip_prefix(server))
        .is_some_and(|rest| rest.starts_with("__"))
}

/// Replaces everything except letters, digits, `_` and `-` with `_`. The result is ASCII.
fn replace_invalid_chars(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect()
}

/// Shortens a name and appends a hash of the original.
fn with_hash_suffix(plain: &str, original: &str, longest: usize) -> String {
    let mark = format!("{:08x}", fnv1a(original.as_bytes()));
    let mut kept = plain.to_owned();
    kept.truncate(longest - mark.len() - 1);
    let kept = kept.trim_end_matches('_');
    format!("{kept}-{mark}")
}

fn make_unique(name: String, longest: usize, taken: &mut HashSet<String>) -> String {
    let mut found = name;
    while !taken.insert(found.clone()) {
        found = with_hash_suffix(&found, &format!("{found} again"), longest);
    }
    found
}

/// FNV-1a, which is the same in every version of this program, unlike the standard library's hash.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn new_slug(name: &str) -> String {
        server_slug(name, &mut HashSet::new())
    }

    fn new_tool_name(server: &str, name: &str) -> String {
        tool_name(server, name, &mut HashSet::new())
    }

    #[test]
    fn valid_name_is_unchanged() {
        assert_eq!(new_slug("github"), "github");
        assert_eq!(
            new_tool_name("github", "create_issue"),
            "mcp__github__create_issue"
        );
        assert_eq!(new_tool_name("my-db", "run-query"), "mcp__my-db__run-query");
    }

    #[test]
    fn invalid_name_gets_hash_suffix() {
        // FNV-1a of the original names, computed by another implementation.
        assert_eq!(new_tool_name("a", "get.user"), "mcp__a__get_user-404fa158");
        assert_eq!(new_slug("a__b"), "a_b-749bc500");
        let long = new_tool_name("a", &"x".repeat(70));
        assert_eq!(long.len(), 64);
        assert!(long.starts_with("mcp__a__xxx"));
    }

    #[test]
    fn servers_with_same_name_get_distinct_slugs() {
        let mut taken = HashSet::new();
        assert_eq!(server_slug("a", &mut taken), "a");
        let second = server_slug("a", &mut taken);
        assert!(second.starts_with("a-") && second.len() == 10, "{second}");
    }

    proptest! {
        #[test]
        fn tool_names_are_unique(tools in prop::collection::vec(("[a_.-]{0,4}|\\PC{0,40}", "[a_.-]{0,5}|\\PC{0,80}"), 0..12)) {
            let mut slugs = HashSet::new();
            let mut all = HashSet::new();
            for (server_name, remote_name) in &tools {
                // Each has its own server, because server names may be equal.
                let slug = server_slug(server_name, &mut slugs);
                let mut taken = HashSet::new();
                for _ in 0..2 {
                    let name = tool_name(&slug, remote_name, &mut taken);
                    prop_assert!(name.len() <= 64, "{name}");
                    prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
                    prop_assert!(all.insert(name.clone()), "{name} twice");
                }
            }
        }
    }
}
