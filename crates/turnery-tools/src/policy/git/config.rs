//! Parses a repository's own configuration if every line is known to make git run nothing.
//!
//! The parser runs no program and never guesses: a line that is neither `key = value` nor `[section "name"]`,
//! or a section or key that is not listed here, makes the whole file not plain. The lists contain what git
//! itself, its hosts and common editors write.

use std::{collections::BTreeSet, fs, io::Read as _, path::Path};

/// Maximum size of a configuration; larger files are not read. Unit: bytes.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Settings of a plain configuration that affect the checks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PlainConfig {
    /// `core.worktree`: the repository's work tree, as written.
    pub(super) worktree: Option<String>,
    /// True if `core.hooksPath` is set.
    pub(super) has_hooks_path: bool,
    /// True if a submodule is configured, checked out or not.
    pub(super) has_submodules: bool,
    /// True if a remote is a repository on this machine.
    pub(super) has_local_remotes: bool,
    /// Names of remotes with a URL on another machine. Git treats a name without a URL as a path.
    pub(super) remotes: BTreeSet<String>,
    /// Names of all remote sections.
    pub(super) remote_sections: BTreeSet<String>,
    /// Names of remotes that branches refer to.
    pub(super) branch_remotes: BTreeSet<String>,
    /// True if refs are stored in reftables instead of files.
    pub(super) has_reftable: bool,
    /// True if object names have 32 bytes instead of 20.
    pub(super) uses_sha256: bool,
    /// Values of `user.signingKey`: key ids or mail addresses. Git reads them as paths if the user's own
    /// `gpg.format` is `ssh`.
    pub(super) signing_keys: BTreeSet<String>,
    /// True for extensions of version 1 of the format. With version 0 git ignores the repository.
    needs_version_1: bool,
    /// `core.repositoryformatversion`. Without it git ignores the extensions.
    format_version: Option<u8>,
}

/// Accepted keys of sections without a subsection, such as `[core]`; `apply_key` also checks the values of
/// some.
const PLAIN_KEYS: &[(&str, &[&str])] = &[
    ("branch", &["autosetupmerge", "autosetuprebase", "sort"]),
    ("clean", &["requireforce"]),
    ("commit", &["cleanup", "gpgsign", "status", "verbose"]),
    (
        "core",
        &[
            "abbrev",
            "autocrlf",
            "bare",
            "bigfilethreshold",
            "commitgraph",
            "compression",
            "eol",
            "filemode",
            "fscache",
            "fsmonitor",
            "hidedotfiles",
            "hookspath",
            "ignorecase",
            "logallrefupdates",
            "longpaths",
            "multipackindex",
            "precomposeunicode",
            "preloadindex",
            "protecthfs",
            "protectntfs",
            "quotepath",
            "repositoryformatversion",
            "safecrlf",
            "sharedrepository",
            "sparsecheckout",
            "sparsecheckoutcone",
            "symlinks",
            "untrackedcache",
            "whitespace",
            "worktree",
        ],
    ),
    (
        "diff",
        &[
            "algorithm",
            "colormoved",
            "indentheuristic",
            "mnemonicprefix",
            "noprefix",
            "renamelimit",
            "renames",
        ],
    ),
    (
        "extensions",
        // A git that does not know another extension works as if outside the repository, at its top.
        &["objectformat", "refstorage", "worktreeconfig"],
    ),
    ("fetch", &["prune", "prunetags", "writecommitgraph"]),
    ("gc", &["auto", "autodetach", "autopacklimit"]),
    ("gpg", &["format"]),
    ("index", &["skiphash", "sparse", "threads", "version"]),
    ("init", &["defaultbranch"]),
    ("lfs", &["repositoryformatversion"]),
    ("log", &["abbrevcommit", "date", "decorate", "follow"]),
    ("maintenance", &["auto", "strategy"]),
    ("merge", &["conflictstyle", "ff", "log", "renamelimit"]),
    ("pack", &["threads", "windowmemory"]),
    ("pull", &["ff", "rebase"]),
    ("push", &["autosetupremote", "default", "followtags"]),
    ("rebase", &["autosquash", "autostash", "updaterefs"]),
    ("rerere", &["autoupdate", "enabled"]),
    ("status", &["branch", "short", "showuntrackedfiles"]),
    ("tag", &["gpgsign", "sort"]),
    ("user", &["email", "name", "signingkey", "useconfigonly"]),
];

/// Accepted keys of sections with a subsection, such as `[remote "origin"]`; `apply_key` also checks the
/// values of some.
const PLAIN_SUBSECTION_KEYS: &[(&str, &[&str])] = &[
    (
        "branch",
        &[
            "description",
            "github-pr-base-branch",
            "github-pr-owner-number",
            "merge",
            "pushremote",
            "rebase",
            "remote",
            "vscode-merge-base",
        ],
    ),
    ("http", &["extraheader"]),
    ("lfs", &["access"]),
    (
        "remote",
        &["fetch", "gh-resolved", "prune", "pushurl", "tagopt", "url"],
    ),
    ("submodule", &["active", "branch", "ignore", "url"]),
];

/// Sections none of whose keys runs anything: colours and hints.
const PLAIN_SECTIONS: &[&str] = &["advice", "color"];

/// Reads a configuration file; `None` unless every line is known to run nothing. A missing file is an empty
/// configuration.
pub(super) fn read_plain_config(path: &Path) -> Option<PlainConfig> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Some(PlainConfig::default());
        }
        Ok(found) if found.is_file() && found.len() <= MAX_CONFIG_BYTES => {}
        Ok(_) | Err(_) => return None,
    }
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    file.take(MAX_CONFIG_BYTES).read_to_string(&mut text).ok()?;
    parse_plain_config(&text)
}

fn parse_plain_config(text: &str) -> Option<PlainConfig> {
    let mut config = PlainConfig::default();
    let mut section: Option<ConfigSection<'_>> = None;
    for line in text.split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.chars().any(|c| c.is_control() && c != '\t') {
            return None;
        }
        let line = line.trim_matches([' ', '\t']);
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        // A backslash joins lines or hides characters.
        if line.contains('\\') {
            return None;
        }
        if let Some(header) = line.strip_prefix('[') {
            section = Some(ConfigSection::parse(header.strip_suffix(']')?)?);
            continue;
        }
        let (key, value) = match line.split_once('=') {
            Some((key, value)) => (key.trim_end_matches([' ', '\t']), Some(value)),
            None => (line, None),
        };
        let value = value.map(|value| value.trim_matches([' ', '\t']));
        if !is_identifier(key) {
            return None;
        }
        section
            .as_ref()?
            .apply_key(&key.to_lowercase(), value, &mut config)?;
    }
    (!config.needs_version_1 || config.format_version == Some(1)).then_some(config)
}

/// Section header without the brackets: `[core]` or `[remote "origin"]`.
struct ConfigSection<'a> {
    name: String,
    subsection: Option<&'a str>,
}

impl<'a> ConfigSection<'a> {
    fn parse(header: &'a str) -> Option<Self> {
        let (name, subsection) = match header.split_once(' ') {
            None => (header, None),
            Some((name, quoted)) => {
                let inside = quoted.strip_prefix('"')?.strip_suffix('"')?;
                (name, Some(inside).filter(|inside| !inside.contains('"')))
            }
        };
        let is_whole = header.contains(' ') == subsection.is_some();
        (is_identifier(name) && is_whole).then(|| Self {
            name: name.to_lowercase(),
            subsection,
        })
    }

    /// Applies a key to the configuration; `None` unless the key runs nothing.
    fn apply_key(&self, key: &str, value: Option<&str>, config: &mut PlainConfig) -> Option<()> {
        let name = self.name.as_str();
        if let ("remote", Some(remote)) = (name, &self.subsection) {
            config.remote_sections.insert((*remote).to_string());
        }
        let table = match self.subsection {
            None => PLAIN_KEYS,
            Some(_) => PLAIN_SUBSECTION_KEYS,
        };
        let is_listed = PLAIN_SECTIONS.contains(&name)
            || table
                .iter()
                .any(|(section, keys)| *section == name && keys.contains(&key));
        if !is_listed {
            return None;
        }
        // Values that are evaluated here are understood only without quotes and comments.
        let plain = value.filter(|value| !value.contains(['"', '#', ';']));
        let accept_if = |is_plain: fn(&str) -> bool| plain.is_some_and(is_plain).then_some(());
        config.has_submodules |= name == "submodule";
        match (name, self.subsection, key) {
            ("core", None, "bare") => accept_if(|value| value == "false"),
            // `true` selects git's own monitor; any other value is a program.
            ("core", None, "fsmonitor") => accept_if(|value| matches!(value, "true" | "false")),
            ("core", None, "repositoryformatversion") => {
                let version = match plain? {
                    "0" => 0,
                    "1" => 1,
                    _ => return None,
                };
                // If the key occurs twice, it is unclear which one counts.
                config
                    .format_version
                    .replace(version)
                    .is_none()
                    .then_some(())
            }
            // Without this protection a pull may write into `.git` under an equivalent name.
            ("core", None, "protecthfs" | "protectntfs") => accept_if(|value| value == "true"),
            // Another format would let the repository choose the key file.
            ("gpg", None, "format") => accept_if(|value| value == "openpgp"),
            // If the user's own format is `ssh`, a path here would choose the key file.
            ("user", None, "signingkey") => {
                let key = plain.filter(|value| is_signing_key_id(value))?;
                config.signing_keys.insert(key.to_owned());
                Some(())
            }
            // Git asks gpg whether a signature is valid.
            ("branch" | "tag", None, "sort") => {
                accept_if(|value| !value.to_lowercase().contains("signature"))
            }
            ("core", None, "hookspath") => {
                config.has_hooks_path = true;
                Some(())
            }
            ("core", None, "worktree") => {
                config.worktree = Some(plain.filter(|value| !value.is_empty())?.to_owned());
                Some(())
            }
            ("extensions", None, "objectformat") => {
                config.needs_version_1 = true;
                config.uses_sha256 = match plain? {
                    "sha1" => false,
                    "sha256" => true,
                    _ => return None,
                };
                Some(())
            }
            ("extensions", None, "refstorage") => {
                config.needs_version_1 = true;
                // Git writes no other value. One before 2.45 knows none, and works as if outside the repository.
                config.has_reftable = true;
                accept_if(|value| value == "reftable")
            }
            ("remote", Some(_), "url" | "pushurl")
                if plain
                    .is_some_and(|url| url.starts_with(['/', '.']) || url.starts_with("file:")) =>
            {
                config.has_local_remotes = true;
                accept_if(is_plain_url)
            }
            ("remote", Some(name), "url") => {
                if is_remote_name(name) {
                    config.remotes.insert(name.to_owned());
                }
                accept_if(is_plain_url)
            }
            ("remote", Some(_), "pushurl") | ("submodule", Some(_), "url") => {
                accept_if(is_plain_url)
            }
            ("branch", Some(_), "remote" | "pushremote") => {
                let name = plain.filter(|value| is_remote_name(value))?;
                config.branch_remotes.insert(name.to_owned());
                Some(())
            }
            _ => Some(()),
        }
    }
}

/// Returns true for letters, digits and hyphens only. An old-style `[section.name]` has a dot.
fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Returns true for the id of a key or a mail address.
fn is_signing_key_id(text: &str) -> bool {
    let id = text.strip_prefix("0x").unwrap_or(text);
    let id = id.strip_suffix('!').unwrap_or(id);
    let is_id = id.len() >= 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_address = |(name, host): (&str, &str)| {
        let is_part = |part: &str| {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
            !part.starts_with(['.', '-']) && !part.is_empty() && part.bytes().all(known)
        };
        is_part(name) && is_part(host)
    };
    is_id || text.split_once('@').is_some_and(is_address)
}

/// Returns true if a URL names no program, as `ext::sh -c ...` and other remote helpers do.
fn is_plain_url(url: &str) -> bool {
    let known = ["https://", "http://", "ssh://", "git://", "file://"];
    let is_path = url.starts_with(['/', '.']);
    // Without a colon before the first slash, the text is a path.
    let is_host = |rest: &str| {
        rest.split_once(':')
            .is_some_and(|(host, _)| !host.contains('/'))
    };
    let is_short = url.strip_prefix("git@").is_some_and(is_host);
    (is_path || is_short || known.iter().any(|start| url.starts_with(start)))
        && !url.contains("::")
        && !url.contains(char::is_whitespace)
}

/// Returns true for the name of a remote, or `.` for the repository itself.
fn is_remote_name(name: &str) -> bool {
    name == "."
        || (name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)))
}

#[cfg(test)]
mod differential_tests;

#[cfg(test)]
mod tests {
    use super::*;

    /// Typical configuration as written by `git clone`, `git submodule add`, `git lfs install --local`,
    /// GitHub's CLI and editors.
    const TYPICAL_CONFIG: &str = "\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
# a comment
[remote \"origin\"]
\turl = git@github.com:me/project.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
\tgh-resolved = base
[branch \"main\"]
\tremote = origin
\tmerge = refs/heads/main
\tvscode-merge-base = origin/main
[submodule \"lib/x\"]
\tactive = true
\turl = https://example.org/x.git
[user]
\tname = \"A B\"
\temail = a@b.example
[color]
\tui = auto
";

    #[test]
    fn typical_configurations_are_plain() {
        let expected = PlainConfig {
            has_submodules: true,
            remotes: BTreeSet::from(["origin".to_owned()]),
            remote_sections: BTreeSet::from(["origin".to_owned()]),
            branch_remotes: BTreeSet::from(["origin".to_owned()]),
            format_version: Some(0),
            ..PlainConfig::default()
        };
        assert_eq!(
            parse_plain_config(&TYPICAL_CONFIG.replace('\n', "\r\n")).as_ref(),
            Some(&expected)
        );
        assert_eq!(parse_plain_config(TYPICAL_CONFIG), Some(expected));
        assert_eq!(
            parse_plain_config(
                "[core]\n\trepositoryformatversion = 1\n\tworktree = ../../../x\n[extensions]\n\tobjectFormat = sha256\n"
            ),
            Some(PlainConfig {
                worktree: Some("../../../x".to_owned()),
                uses_sha256: true,
                needs_version_1: true,
                format_version: Some(1),
                ..PlainConfig::default()
            })
        );
    }

    #[test]
    fn signing_keys_are_plain_by_id_and_address() {
        for key in ["0xDEADBEEF!", "3AA5C34371567BD2", "me+x@example.org"] {
            let text = format!("[user]\n\tsigningKey = {key}\n");
            let expected = PlainConfig {
                signing_keys: BTreeSet::from([key.to_owned()]),
                ..PlainConfig::default()
            };
            assert_eq!(parse_plain_config(&text), Some(expected), "{key}");
        }
    }

    #[test]
    fn hooks_path_is_reported() {
        let config = parse_plain_config("[core]\n\thooksPath = .husky/_\n\tfsmonitor = true\n");
        assert!(config.is_some_and(|config| config.has_hooks_path));
    }

    #[test]
    fn unknown_configuration_is_not_plain() {
        for text in [
            "[core]\nfsmonitor = ./x\n",
            "[core]\nFSMonitor = True\n",
            "[core]\nfsmonitor = \"true\"x\n",
            "[core] fsmonitor = ./x\n",
            "[core]\nfilemode = true\\\n[diff]\nexternal = x\n",
            "[core]\nbare = true\n",
            "[core]\nbare = \"true\"\n",
            "[core]\nbare\n",
            "[core.x]\nfilemode = true\n",
            "[ core]\nfilemode = true\n",
            "[core ]\nfilemode = true\n",
            "[core \"x\"]\nfilemode = true\n",
            "[core\"]\nfilemode = true\n",
            "filemode = true\n",
            "[core]\nfilemode = true\u{b}\n",
            "\u{feff}[core]\nfsmonitor = x\n",
            "[include]\npath = x\n",
            "[includeIf \"gitdir:x\"]\npath = x\n",
            "[diff \"x\"]\ncommand = x\n",
            "[diff \"x\"]\ntextconv = x\n",
            "[filter \"x\"]\nclean = x\n",
            "[remote \"x\"]\nuploadpack = x\n",
            "[remote \"x\"]\nvcs = x\n",
            "[remote \"x\"]\npromisor = true\n",
            "[remote \"x\"]\nurl = ext::sh -c x\n",
            "[remote \"x\"]\nurl = \"ext::sh -c x\"\n",
            "[branch \"x\"]\nremote = ../x\n",
            "[submodule \"x\"]\nupdate = !x\n",
            "[alias]\nx = !x\n",
            "[pager]\nstatus = x\n",
            "[gpg]\nprogram = x\n",
            "[gpg]\nformat = ssh\n",
            "[log]\nshowSignature = true\n",
            "[core]\nprotectNTFS = false\n",
            "[core]\ncheckStat = minimal\n",
            "[core]\ntrustCTime = false\n",
            "[core]\nprotectHFS = false\n",
            "[format]\npretty = %G?\n",
            "[credential]\nhelper = x\n",
            "[extensions]\npartialClone = origin\n",
            "[extensions]\nobjectFormat = sha256\n",
            "[core]\nrepositoryformatversion = 0\n[extensions]\nobjectFormat = sha256\n",
            "[core]\nrepositoryformatversion = 1\nrepositoryformatversion = 0\n[extensions]\nobjectFormat = sha256\n",
            "[branch]\nsort = -signature\n",
            "[tag]\nsort = Signature:key\n",
            "[remote \"x\"]\nurl = git@x\n",
            "[remote \"x\"]\nurl = git@x/y:z\n",
            "[extensions]\nrefStorage = files:///x\n",
            "[url \"ext::x\"]\ninsteadOf = https://\n",
            "[gc]\nrecentObjectsHook = x\n",
            "[user]\nsigningKey = ~/.ssh/id_ed25519\n",
            "[user]\nsigningKey = /home/me/.ssh/id_ed25519\n",
            "[user]\nsigningKey = ../../.ssh/id_ed25519\n",
            "[user]\nsigningKey = ../a@b\n",
            "[user]\nsigningKey = id_ed25519\n",
            "[user]\nsigningKey = key::ssh-ed25519 AAAA\n",
            "[user]\nsigningKey\n",
        ] {
            assert_eq!(parse_plain_config(text), None, "{text:?}");
        }
    }
}
