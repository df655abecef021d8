//! Names: what the model calls the tools of servers: `mcp__SERVER__TOOL`.
//!
//! All model APIs take letters, digits, `_` and `-`, at most 64 of them. A name that has to be changed
//! for that gets a mark made of the original, so that two tools never share a name, and a tool has the
//! same name in every process and whatever else is connected.

use std::collections::HashSet;

/// What all names begin with; none of ours does.
const PREFIX: &str = "mcp__";
/// What the strictest model API takes.
const LONGEST: usize = 64;
/// How much of that a server may take.
const SERVER: usize = 24;

/// A server's name as part of those of its tools. Never with `__` inside or `_` at the end, so that
/// where it ends is plain. `taken`: those of other servers of the session.
pub(super) fn of_server(name: &str, taken: &mut HashSet<String>) -> String {
    let mut plain = clean(name);
    let is_plain = |part: &str| !part.is_empty() && !part.contains("__") && !part.ends_with('_');
    if plain == name && name.len() <= SERVER && is_plain(name) {
        return unique(plain, SERVER, taken);
    }
    while plain.contains("__") {
        plain = plain.replace("__", "_");
    }
    unique(marked(&plain, name, SERVER), SERVER, taken)
}

/// The name of a tool. `taken`: those of other tools of the server.
pub(super) fn of_tool(server: &str, name: &str, taken: &mut HashSet<String>) -> String {
    let plain = clean(name);
    let whole = format!("{}__{plain}", of_all(server));
    let name = match plain == name && !name.is_empty() && whole.len() <= LONGEST {
        true => whole,
        false => marked(&whole, name, LONGEST),
    };
    unique(name, LONGEST, taken)
}

/// What stands for all tools of a server in a rule.
pub(super) fn of_all(server: &str) -> String {
    format!("{PREFIX}{server}")
}

/// Whether a tool of that name would be this server's.
pub(super) fn is_of(name: &str, server: &str) -> bool {
    name.strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_prefix(server))
        .is_some_and(|rest| rest.starts_with("__"))
}

/// Everything else than letters, digits, `_` and `-` as `_`. All of it is one byte each then.
fn clean(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect()
}

/// The beginning of a name, and a mark made of the original.
fn marked(plain: &str, original: &str, longest: usize) -> String {
    let mark = format!("{:08x}", hash(original.as_bytes()));
    let mut kept = plain.to_owned();
    kept.truncate(longest - mark.len() - 1);
    let kept = kept.trim_end_matches('_');
    format!("{kept}-{mark}")
}

fn unique(name: String, longest: usize, taken: &mut HashSet<String>) -> String {
    let mut found = name;
    while !taken.insert(found.clone()) {
        found = marked(&found, &format!("{found} again"), longest);
    }
    found
}

/// FNV-1a: the same in every version of this program, unlike the standard library's.
fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn server(name: &str) -> String {
        of_server(name, &mut HashSet::new())
    }

    fn tool(server: &str, name: &str) -> String {
        of_tool(server, name, &mut HashSet::new())
    }

    #[test]
    fn a_name_that_suits_stays_as_it_is() {
        assert_eq!(server("github"), "github");
        assert_eq!(tool("github", "create_issue"), "mcp__github__create_issue");
        assert_eq!(tool("my-db", "run-query"), "mcp__my-db__run-query");
    }

    #[test]
    fn a_name_that_does_not_suit_is_changed_and_marked() {
        // FNV-1a of "get.user" and of the other originals, by another implementation.
        assert_eq!(tool("a", "get.user"), "mcp__a__get_user-404fa158");
        assert_eq!(server("a__b"), "a_b-749bc500");
        let long = tool("a", &"x".repeat(70));
        assert_eq!(long.len(), 64);
        assert!(long.starts_with("mcp__a__xxx"));
    }

    #[test]
    fn two_servers_of_one_name_have_two() {
        let mut taken = HashSet::new();
        assert_eq!(of_server("a", &mut taken), "a");
        let second = of_server("a", &mut taken);
        assert!(second.starts_with("a-") && second.len() == 10, "{second}");
    }

    proptest! {
        #[test]
        fn no_two_tools_share_a_name(tools in prop::collection::vec(("[a_.-]{0,4}|\\PC{0,40}", "[a_.-]{0,5}|\\PC{0,80}"), 0..12)) {
            let mut slugs = HashSet::new();
            let mut all = HashSet::new();
            for (server_name, tool_name) in &tools {
                // Each a server of its own: names of servers may be the same.
                let slug = of_server(server_name, &mut slugs);
                let mut taken = HashSet::new();
                for _ in 0..2 {
                    let name = of_tool(&slug, tool_name, &mut taken);
                    prop_assert!(name.len() <= 64, "{name}");
                    prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
                    prop_assert!(all.insert(name.clone()), "{name} twice");
                }
            }
        }
    }
}
