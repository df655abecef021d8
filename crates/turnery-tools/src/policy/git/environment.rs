//! The environment that keeps git from running what a repository names. Commands that only read run in it.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

/// Variables that it sets.
const SET: &[(&str, &str)] = &[
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("PAGER", "cat"),
];

/// Settings that win over those of every file.
const CONFIG: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    // It may name packs anywhere. Packs are found without it.
    ("core.multiPackIndex", "false"),
    ("core.pager", "cat"),
    // The person's own choices may lead git into submodules, those that are not checked out too.
    ("diff.submodule", "short"),
    ("log.showSignature", "false"),
    ("protocol.ext.allow", "never"),
    ("safe.bareRepository", "explicit"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
];

/// Variables that would lead git to another repository than the one that was looked at, or to a program.
pub(crate) const REMOVED: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_EXTERNAL_DIFF",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_WORK_TREE",
];

/// The variables to set beside those of `inherited`, whose `GIT_CONFIG_COUNT` is added to.
pub(crate) fn hardened(inherited: impl Fn(&str) -> Option<OsString>) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut variables: Vec<(String, String)> = SET.iter().map(owned).collect();
    let before = inherited("GIT_CONFIG_COUNT");
    let before = before.as_deref().and_then(OsStr::to_str);
    let before: usize = before.and_then(|count| count.parse().ok()).unwrap_or(0);
    for (at, (key, value)) in CONFIG.iter().enumerate() {
        let at = before.saturating_add(at);
        variables.push((format!("GIT_CONFIG_KEY_{at}"), (*key).to_owned()));
        variables.push((format!("GIT_CONFIG_VALUE_{at}"), (*value).to_owned()));
    }
    let count = before.saturating_add(CONFIG.len());
    variables.push(("GIT_CONFIG_COUNT".to_owned(), count.to_string()));
    variables
}

/// Makes the environment of a command hardened.
pub(crate) fn harden(environment: &mut BTreeMap<OsString, OsString>) {
    for name in REMOVED {
        environment.remove(OsStr::new(name));
    }
    let variables = hardened(|name| environment.get(OsStr::new(name)).cloned());
    let variables = variables.into_iter();
    environment.extend(variables.map(|(name, value)| (name.into(), value.into())));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(inherited: &[(&str, &str)]) -> BTreeMap<OsString, OsString> {
        let mut environment = inherited
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        harden(&mut environment);
        environment
    }

    #[test]
    fn settings_are_added_to_inherited_ones() {
        let set = of(&[
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "user.name"),
            ("GIT_CONFIG_VALUE_0", "x"),
            ("GIT_DIR", "/elsewhere"),
        ]);
        let get = |name: &str| set.get(OsStr::new(name)).and_then(|value| value.to_str());
        assert_eq!(get("GIT_CONFIG_KEY_0"), Some("user.name"));
        assert_eq!(get("GIT_CONFIG_KEY_1"), Some("core.fsmonitor"));
        assert_eq!(get("GIT_CONFIG_VALUE_1"), Some("false"));
        assert_eq!(get("GIT_CONFIG_COUNT"), Some("11"));
        assert_eq!(get("GIT_DIR"), None);
        assert_eq!(get("GIT_OPTIONAL_LOCKS"), Some("0"));
    }

    #[test]
    fn a_count_that_is_no_number_is_replaced() {
        let set = of(&[("GIT_CONFIG_COUNT", "many")]);
        assert_eq!(set[OsStr::new("GIT_CONFIG_COUNT")], "10");
        assert_eq!(set[OsStr::new("GIT_CONFIG_KEY_0")], "core.fsmonitor");
    }
}
