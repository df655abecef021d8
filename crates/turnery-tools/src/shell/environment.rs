//! Environment: what a command finds in it: nothing that waits for a person, and no keys.

use std::ffi::OsStr;

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

/// The variables to take away, of those that there are.
pub(crate) fn removed<'a>(
    names: impl Iterator<Item = &'a OsStr>,
    hidden: &[String],
) -> Vec<&'a OsStr> {
    let is_hidden = |name: &str| {
        hidden
            .iter()
            .any(|pattern| match pattern.strip_prefix('*') {
                Some(end) => name.ends_with(end),
                None => name == pattern,
            })
    };
    names
        .filter(|name| {
            let name = name.to_string_lossy().to_uppercase();
            name == REMOVED || is_hidden(&name)
        })
        .collect()
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
        let removed = removed(names.iter().map(OsStr::new), &hidden);
        assert_eq!(removed, names[..7]);
    }
}
