//! Compares the parser of plain configurations with git itself, on generated files.

use super::{
    PLAIN_KEYS, PLAIN_SECTIONS, PLAIN_SUBSECTION_KEYS, PlainConfig, is_signing_key_id,
    parse_plain_config,
};
use proptest::{prelude::*, sample::select};
use std::{cell::Cell, collections::BTreeSet, fs, process::Command};

/// Sections that are plain.
const PLAIN_SAMPLES: &[&str] = &[
    "[core]\n\trepositoryformatversion = 1\n\tfsmonitor = true\n",
    "[core]\n\tfsmonitor = false\n\tfilemode\n",
    "[core]\n\tworktree = ../x\n\tbare = false\n",
    "[core]\n\tabbrev = 7\n\tworktree = ../x\n\thooksPath = hooks\n",
    "[remote \"origin\"]\n\turl = https://example.org/x.git\n",
    "[remote \"other\"]\n\turl = https://example.org/y.git\n\tprune = true\n",
    "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n",
    "[user]\n\tname = A B\n\tsigningKey = 3AA5C34371567BD2\n",
    "[submodule \"a/b\"]\n\tactive = true\n",
    "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n",
    "[gpg]\n\tformat = openpgp\n",
    "# fsmonitor = x\n",
    "; [alias]\n",
];

/// Fragments that parsers may read differently, inserted anywhere.
const ODDITIES: &[&str] = &[
    "\n",
    "\r\n",
    "\r",
    "\\\n",
    "\\\r\n",
    "\\",
    "\\t",
    "\\n",
    "\"",
    "#",
    ";",
    "=",
    "[",
    "]",
    ".",
    "-",
    " ",
    "\t",
    "\u{b}",
    "\u{c}",
    "\u{1}",
    "\u{feff}",
    "\u{a0}",
    "\u{85}",
    "\u{2028}",
    "\0",
    "x",
    "tr\"ue\"",
    "a\\\n",
    "\n[core]",
    "\n[alias]\n",
    "\n[core]fsmonitor = x\n",
    "\n[core \"x\"]\n",
    "\n[core.x]\n",
    "\nfsmonitor = x\n",
    "\nfsmonitor = true # x\n",
    "\nfsmonitor = \"true\"\n",
    "\nFSMonitor=x",
    "\nurl = ext::x",
    "\nurl = \"https://example.org/z.git\"",
    "\nremote = \"a\" # b",
    "\nworktree = \"x\" ; y",
];

/// Generates a plain file with a few oddities in it.
fn config_text_strategy() -> impl Strategy<Value = String> {
    let sections = prop::collection::vec(select(PLAIN_SAMPLES), 1..4);
    let place = (any::<prop::sample::Index>(), any::<bool>());
    let oddities = prop::collection::vec((place, select(ODDITIES)), 0..4);
    (sections, oddities).prop_map(|(sections, oddities)| {
        let mut text = sections.concat();
        for ((at, is_end_of_line), oddity) in oddities {
            let at = at.index(text.len() + 1);
            let end = text.bytes().skip(at).position(|byte| byte == b'\n');
            let at = at + end.filter(|_| is_end_of_line).unwrap_or_default();
            text.insert_str(text.ceil_char_boundary(at), oddity);
        }
        text
    })
}

fn is_listed_key(section: &str, has_name: bool, key: &str) -> bool {
    let table = if has_name {
        PLAIN_SUBSECTION_KEYS
    } else {
        PLAIN_KEYS
    };
    PLAIN_SECTIONS.contains(&section)
        || table
            .iter()
            .any(|(name, keys)| *name == section && keys.contains(&key))
}

/// Entry of a configuration file as git reads it.
struct GitConfigEntry {
    section: String,
    name: Option<String>,
    key: String,
    value: String,
}

/// Reads the file with git; `None` if git refuses it.
fn read_with_git(text: &str) -> Option<Vec<GitConfigEntry>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    fs::write(&file, text).unwrap();
    let output = Command::new("git")
        .args(["config", "--no-includes", "--list", "-z", "--file"])
        .arg(&file)
        .output();
    let output = output.unwrap();
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8(output.stdout).unwrap();
    let entry = |entry: &str| {
        let (name, value) = entry.split_once('\n').unwrap_or((entry, "true"));
        let (section, rest) = name.split_once('.').unwrap();
        let (name, key) = match rest.rsplit_once('.') {
            Some((name, key)) => (Some(name.to_owned()), key),
            None => (None, rest),
        };
        let own = |text: &str| text.to_owned();
        GitConfigEntry {
            section: own(section),
            name,
            key: own(key),
            value: own(value),
        }
    };
    let entries = text.split('\0').filter(|it| !it.is_empty());
    Some(entries.map(entry).collect())
}

/// Returns a key that git would run or reads differently than the parser.
fn find_disagreement(config: &PlainConfig, text: &str) -> Option<String> {
    let mut remotes = BTreeSet::new();
    let mut branch_remotes = BTreeSet::new();
    let (mut worktree, mut format, mut version) = (None, None, None);
    for entry in read_with_git(text)? {
        let GitConfigEntry {
            section,
            name,
            key,
            value,
        } = entry;
        let wrong = Some(format!("{section} {name:?} {key} = {value:?}"));
        if !is_listed_key(&section, name.is_some(), &key) {
            return wrong;
        }
        let is_fine = match (section.as_str(), name, key.as_str()) {
            ("core", None, "fsmonitor") => matches!(value.as_str(), "true" | "false"),
            ("core", None, "bare") => value == "false",
            ("core", None, "hookspath") => config.has_hooks_path,
            ("core", None, "worktree") => !worktree.insert(value).is_empty(),
            ("core", None, "repositoryformatversion") => !version.insert(value).is_empty(),
            ("extensions", None, "objectformat") => !format.insert(value).is_empty(),
            ("gpg", None, "format") => value == "openpgp",
            ("user", None, "signingkey") => is_signing_key_id(&value),
            ("submodule", Some(_), _) => config.has_submodules,
            ("remote", Some(name), "url") => {
                remotes.insert(name);
                let is_local = value.starts_with(['.', '/']) && config.has_local_remotes;
                value.starts_with("https://") || is_local
            }
            ("branch", Some(_), "remote") => {
                branch_remotes.insert(value);
                true
            }
            _ => true,
        };
        if !is_fine {
            return wrong;
        }
    }
    let sha256 = version.as_deref() == Some("1") && format.as_deref() == Some("sha256");
    let is_same = worktree == config.worktree
        && sha256 == config.uses_sha256
        && remotes.is_superset(&config.remotes)
        && branch_remotes == config.branch_remotes;
    (!is_same).then(|| format!("{config:?}"))
}

/// If a file is plain, git reads exactly the same values from it.
#[test]
fn plain_configuration_is_read_as_git_reads_it() {
    let plain = Cell::new(0);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 6000,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let result = runner.run(&config_text_strategy(), |text| {
        if let Some(config) = parse_plain_config(&text) {
            plain.set(plain.get() + 1);
            prop_assert_eq!(find_disagreement(&config, &text), None, "{:?}", text);
        }
        Ok(())
    });
    assert!(result.is_ok(), "{}", result.unwrap_err());
    assert!(plain.get() > 1000, "only {} were plain", plain.get());
}
