//! Defines the levels to which git's environment is hardened against what a repository names. Read-only
//! commands run with the highest.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

/// Git settings that a command line runs with, from least to most restricted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum GitSettings {
    /// The user's own settings.
    #[default]
    Unrestricted,
    /// No setting alone makes git show the contents of files. Used where rules hide files.
    Discreet,
    /// In addition, git fetches nothing implicitly, contacts no repository on this machine, and enters no
    /// submodule because of a setting. Used for commands allowed by a rule.
    Careful,
    /// In addition, git runs nothing that a repository names. Used for read-only commands.
    Hardened,
}

use GitSettings::{Careful, Discreet, Hardened};

/// Variables to set, with the least restricted settings that set them.
const VARIABLES: &[(&str, &str, GitSettings)] = &[
    ("GIT_NO_LAZY_FETCH", "1", Careful),
    ("GIT_OPTIONAL_LOCKS", "0", Hardened),
    ("GIT_PAGER", "cat", Hardened),
    ("GIT_TERMINAL_PROMPT", "0", Hardened),
    ("PAGER", "cat", Hardened),
];

/// Configuration that overrides every file, with the least restricted settings that set it.
const CONFIG_OVERRIDES: &[(&str, &str, GitSettings)] = &[
    // A relative path in the user's settings lies in the work tree and may be a link.
    ("commit.template", "/dev/null", Discreet),
    ("commit.verbose", "false", Discreet),
    ("core.fsmonitor", "false", Hardened),
    ("core.hooksPath", "/dev/null", Hardened),
    // A multi-pack index may name packs anywhere; git finds packs without it.
    ("core.multiPackIndex", "false", Careful),
    ("core.pager", "cat", Hardened),
    // Git would write the index even when it only compares.
    ("diff.autoRefreshIndex", "false", Hardened),
    // The user's settings may lead git into submodules, even into those that are not checked out.
    ("diff.submodule", "short", Discreet),
    // With a signature, git reads no `format.signatureFile`.
    ("format.signature", "", Discreet),
    ("grep.fallbackToNoIndex", "false", Discreet),
    ("log.showSignature", "false", Hardened),
    ("mailmap.file", "/dev/null", Careful),
    // Git treats a name that is not a remote of the repository as a folder; the user's settings may contain
    // such names.
    ("protocol.file.allow", "never", Careful),
    ("push.recurseSubmodules", "no", Careful),
    // The other backend applies patches, which follow links.
    ("rebase.backend", "merge", Careful),
    ("protocol.ext.allow", "never", Careful),
    ("safe.bareRepository", "explicit", Hardened),
    ("status.submoduleSummary", "false", Discreet),
    ("submodule.recurse", "false", Discreet),
];

/// Variables that would direct git to another repository than the checked one, or to a program.
pub(crate) const REMOVED_VARIABLES: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_EXTERNAL_DIFF",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_WORK_TREE",
];

/// Returns the variables to set in addition to `inherited`, whose `GIT_CONFIG_COUNT` is extended.
pub(crate) fn git_variables(
    settings: GitSettings,
    inherited: impl Fn(&str) -> Option<OsString>,
) -> Vec<(String, String)> {
    let holds = |(_, _, from): &&(&str, &str, GitSettings)| settings >= *from;
    let set = VARIABLES.iter().filter(holds);
    let mut variables: Vec<(String, String)> = set
        .map(|(name, value, _)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let before = inherited("GIT_CONFIG_COUNT");
    let before = before.as_deref().and_then(OsStr::to_str);
    let mut count: usize = before.and_then(|count| count.parse().ok()).unwrap_or(0);
    for (key, value, _) in CONFIG_OVERRIDES.iter().filter(holds) {
        variables.push((format!("GIT_CONFIG_KEY_{count}"), (*key).to_owned()));
        variables.push((format!("GIT_CONFIG_VALUE_{count}"), (*value).to_owned()));
        count = count.saturating_add(1);
    }
    if settings != GitSettings::Unrestricted {
        variables.push(("GIT_CONFIG_COUNT".to_owned(), count.to_string()));
    }
    variables
}

/// Applies the settings to the environment of a command.
pub(crate) fn apply_git_settings(
    settings: GitSettings,
    environment: &mut BTreeMap<OsString, OsString>,
) {
    if settings == Hardened {
        for name in REMOVED_VARIABLES {
            environment.remove(OsStr::new(name));
        }
    }
    let variables = git_variables(settings, |name| environment.get(OsStr::new(name)).cloned());
    let variables = variables.into_iter();
    environment.extend(variables.map(|(name, value)| (name.into(), value.into())));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hardened_environment(inherited: &[(&str, &str)]) -> BTreeMap<OsString, OsString> {
        let mut environment = inherited
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        apply_git_settings(Hardened, &mut environment);
        environment
    }

    #[test]
    fn settings_are_added_to_inherited_ones() {
        let set = hardened_environment(&[
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "user.name"),
            ("GIT_CONFIG_VALUE_0", "x"),
            ("GIT_DIR", "/elsewhere"),
        ]);
        let get = |name: &str| set.get(OsStr::new(name)).and_then(|value| value.to_str());
        assert_eq!(get("GIT_CONFIG_KEY_0"), Some("user.name"));
        assert_eq!(get("GIT_CONFIG_KEY_1"), Some("commit.template"));
        assert_eq!(get("GIT_CONFIG_VALUE_1"), Some("/dev/null"));
        assert_eq!(get("GIT_CONFIG_COUNT"), Some("20"));
        assert_eq!(get("GIT_DIR"), None);
        assert_eq!(get("GIT_OPTIONAL_LOCKS"), Some("0"));
    }

    #[test]
    fn hardened_git_runs_nothing_that_is_configured() {
        let set = hardened_environment(&[("GIT_EXTERNAL_DIFF", "evil"), ("GIT_PAGER", "evil")]);
        let get = |name: &str| set.get(OsStr::new(name)).and_then(|value| value.to_str());
        let config = |key: &str| {
            let at = (0..19).find(|at| get(&format!("GIT_CONFIG_KEY_{at}")) == Some(key))?;
            get(&format!("GIT_CONFIG_VALUE_{at}"))
        };
        for (key, value) in [
            ("core.fsmonitor", "false"),
            ("core.hooksPath", "/dev/null"),
            ("core.pager", "cat"),
            ("protocol.ext.allow", "never"),
            ("safe.bareRepository", "explicit"),
        ] {
            assert_eq!(config(key), Some(value), "{key}");
        }
        for (name, value) in [
            ("GIT_EXTERNAL_DIFF", None),
            ("GIT_NO_LAZY_FETCH", Some("1")),
            ("GIT_OPTIONAL_LOCKS", Some("0")),
            ("GIT_PAGER", Some("cat")),
        ] {
            assert_eq!(get(name), value, "{name}");
        }
    }

    #[test]
    fn invalid_config_count_is_replaced() {
        let set = hardened_environment(&[("GIT_CONFIG_COUNT", "many")]);
        assert_eq!(set[OsStr::new("GIT_CONFIG_COUNT")], "19");
        assert_eq!(set[OsStr::new("GIT_CONFIG_KEY_0")], "commit.template");
    }

    #[test]
    fn careful_settings_set_exactly_these_variables() {
        let nothing = |_: &str| None;
        assert_eq!(git_variables(GitSettings::Unrestricted, nothing), []);
        let careful = git_variables(Careful, nothing);
        let pairs: Vec<(&str, &str)> = careful
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [
                ("GIT_NO_LAZY_FETCH", "1"),
                ("GIT_CONFIG_KEY_0", "commit.template"),
                ("GIT_CONFIG_VALUE_0", "/dev/null"),
                ("GIT_CONFIG_KEY_1", "commit.verbose"),
                ("GIT_CONFIG_VALUE_1", "false"),
                ("GIT_CONFIG_KEY_2", "core.multiPackIndex"),
                ("GIT_CONFIG_VALUE_2", "false"),
                ("GIT_CONFIG_KEY_3", "diff.submodule"),
                ("GIT_CONFIG_VALUE_3", "short"),
                ("GIT_CONFIG_KEY_4", "format.signature"),
                ("GIT_CONFIG_VALUE_4", ""),
                ("GIT_CONFIG_KEY_5", "grep.fallbackToNoIndex"),
                ("GIT_CONFIG_VALUE_5", "false"),
                ("GIT_CONFIG_KEY_6", "mailmap.file"),
                ("GIT_CONFIG_VALUE_6", "/dev/null"),
                ("GIT_CONFIG_KEY_7", "protocol.file.allow"),
                ("GIT_CONFIG_VALUE_7", "never"),
                ("GIT_CONFIG_KEY_8", "push.recurseSubmodules"),
                ("GIT_CONFIG_VALUE_8", "no"),
                ("GIT_CONFIG_KEY_9", "rebase.backend"),
                ("GIT_CONFIG_VALUE_9", "merge"),
                ("GIT_CONFIG_KEY_10", "protocol.ext.allow"),
                ("GIT_CONFIG_VALUE_10", "never"),
                ("GIT_CONFIG_KEY_11", "status.submoduleSummary"),
                ("GIT_CONFIG_VALUE_11", "false"),
                ("GIT_CONFIG_KEY_12", "submodule.recurse"),
                ("GIT_CONFIG_VALUE_12", "false"),
                ("GIT_CONFIG_COUNT", "13"),
            ]
        );
    }
}
