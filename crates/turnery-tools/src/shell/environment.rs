//! Environment: what a command finds in it: nothing that waits for a person, and no keys.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

/// Variables that commands never get to see: what names of keys and tokens look like.
/// A `*` in front stands for anything.
pub const HIDDEN_ENV: &[&str] = &[
    "*APIKEY",
    "*PASSWORD",
    "*_CREDENTIALS",
    "*_KEY",
    "*_KEY_ID",
    "*_PASSPHRASE",
    "*_SECRET",
    "*_TOKEN",
    "SECRET",
    "TOKEN",
];

/// Set for every command: no pager, no colour, no question.
pub(super) const SET: &[(&str, &str)] = &[
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
];

/// Removed for every command: it would make `cd` lead elsewhere than the policy saw.
const REMOVED: &str = "CDPATH";

/// Environment of this process without hidden variables.
pub(crate) fn inherited(hidden: &[String]) -> BTreeMap<OsString, OsString> {
    std::env::vars_os()
        .filter(|(name, _)| !is_removed(name, hidden))
        .collect()
}

fn is_removed(name: &OsStr, hidden: &[String]) -> bool {
    let name = name.to_string_lossy().to_uppercase();
    name == REMOVED
        || hidden
            .iter()
            .any(|pattern| match pattern.strip_prefix('*') {
                Some(end) => name.ends_with(end),
                None => name == *pattern,
            })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hidden_and_the_rest_is_not() {
        let hidden: Vec<String> = HIDDEN_ENV.iter().map(|name| (*name).to_owned()).collect();
        let names = [
            "ANTHROPIC_API_KEY",
            "openai_api_key",
            "GH_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "PGPASSWORD",
            "TOKEN",
            "CDPATH",
            "PATH",
            "HOME",
            "TOKEN_COUNT",
            "KEYBOARD",
            "XDG_SESSION_ID",
            "SSH_AUTH_SOCK",
        ];
        let (removed, kept) = names.split_at(7);
        assert!(
            removed
                .iter()
                .all(|name| is_removed(OsStr::new(name), &hidden))
        );
        assert!(
            !kept
                .iter()
                .any(|name| is_removed(OsStr::new(name), &hidden))
        );
    }
}
