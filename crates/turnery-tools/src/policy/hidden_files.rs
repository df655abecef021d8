//! Determines the files that rules hide from a tool, including those that its arguments do not name, such as
//! results of a search, entries of a list, hints of an edit or files that a command reads.

use super::{
    Policy, Rule,
    rule::{READ_GROUP, RulePattern},
};
use std::{
    collections::VecDeque,
    fs::{self, ReadDir},
    path::{Path, PathBuf},
    sync::Arc,
};
use turnery_engine::{ToolError, ToolErrorKind};

/// Maximum number of entries examined in the roots for patterns, upper levels first.
const MAX_ENTRIES: usize = 4096;
/// Number of entries after which other folders have their turn, so that a large folder of build outputs
/// does not use up [`MAX_ENTRIES`].
const ENTRIES_IN_TURN: usize = 32;

/// Rules that deny one tool reading files. The default hides nothing.
#[derive(Clone, Debug, Default)]
pub struct HiddenFiles(Arc<[Rule]>);

impl Policy {
    /// Returns the rules of this policy that hide files from `tool`.
    #[must_use]
    pub fn hidden_files_for(&self, tool: &str) -> HiddenFiles {
        let rules = self.deny_rules().iter().filter(|rule| {
            rule.applies_to(tool, READ_GROUP)
                && matches!(rule.pattern, Some(RulePattern::Files { .. }))
        });
        HiddenFiles(rules.cloned().collect())
    }
}

impl HiddenFiles {
    /// Returns true if the file or a folder above it is hidden. `path` is resolved.
    pub(crate) fn hides(&self, path: &Path, roots: &[PathBuf]) -> bool {
        self.find_rule(path, roots).is_some()
    }

    /// Returns an error if the file is hidden.
    pub(crate) fn check_not_hidden(&self, path: &Path, roots: &[PathBuf]) -> Result<(), ToolError> {
        match self.find_rule(path, roots) {
            None => Ok(()),
            Some(rule) => Err(ToolError::new(ToolErrorKind::Denied, denial_message(rule))),
        }
    }

    /// Returns the hidden files and folders that patterns name, whether they exist or not.
    pub(crate) fn named_paths(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        let named = self.0.iter().filter(|rule| is_literal(rule));
        named
            .flat_map(|rule| rule.literal_prefixes(roots))
            .collect()
    }

    /// Returns those of [`named_paths`](Self::named_paths), and the hidden files and folders among the first
    /// [`MAX_ENTRIES`] entries of the roots. Searches only if a pattern has wildcards, and not in `.git`.
    /// Reads the disk.
    pub(crate) fn find_paths(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        let mut found = self.named_paths(roots);
        let searched: Vec<&Rule> = self.0.iter().filter(|rule| !is_literal(rule)).collect();
        let mut folders: VecDeque<(PathBuf, Option<ReadDir>)> = match searched.is_empty() {
            true => return found,
            false => roots.iter().map(|root| (root.clone(), None)).collect(),
        };
        let mut left = MAX_ENTRIES;
        while left > 0
            && let Some((folder, entries)) = folders.pop_front()
        {
            let Some(mut entries) = entries.or_else(|| fs::read_dir(&folder).ok()) else {
                continue;
            };
            let share = left.min(ENTRIES_IN_TURN);
            let turn: Vec<_> = entries.by_ref().take(share).collect();
            left -= turn.len();
            if turn.len() == share {
                folders.push_back((folder, Some(entries)));
            }
            for entry in turn.into_iter().flatten() {
                let path = entry.path();
                let is_folder = || entry.file_type().is_ok_and(|kind| kind.is_dir());
                if searched.iter().any(|rule| rule.denies_file(&path, roots)) {
                    found.push(path);
                } else if entry.file_name() != ".git" && is_folder() {
                    folders.push_back((path, None));
                }
            }
        }
        found
    }

    fn find_rule(&self, path: &Path, roots: &[PathBuf]) -> Option<&Rule> {
        self.0.iter().find(|rule| rule.denies_file(path, roots))
    }
}

/// Returns true if the pattern has no wildcards other than `**` as its last part.
fn is_literal(rule: &Rule) -> bool {
    let Some(RulePattern::Files { globs, .. }) = &rule.pattern else {
        return false;
    };
    globs.iter().all(|glob| {
        let glob = glob.glob().glob();
        let folder = glob.strip_suffix("**");
        let folder = folder.filter(|it| it.is_empty() || it.ends_with('/'));
        !folder
            .unwrap_or(glob)
            .contains(['*', '?', '[', ']', '{', '}', '\\'])
    })
}

/// Returns the message that tells the model which rule denied its call.
pub(super) fn denial_message(rule: &Rule) -> String {
    format!("the rule {rule} denies this: do it another way, or ask the user to change the rule")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mode;

    #[test]
    fn hidden_file_beside_large_folder_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["a", "b/c", "target", ".git"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in ["a/.env", "b/c/.env", ".git/.env"] {
            fs::write(root.join(name), "").unwrap();
        }
        for number in 0..MAX_ENTRIES {
            fs::write(root.join("target").join(number.to_string()), "").unwrap();
        }
        let rules = ["read(**/.env)", "read(absent)", "edit(b)"].map(|it| it.parse().unwrap());
        let policy = Policy::new(Mode::Ask, vec![], rules.into());
        let hidden = policy.hidden_files_for("shell");
        let roots = [root.clone()];
        let mut found = hidden.find_paths(&roots);
        found.sort();
        assert_eq!(
            found,
            ["a/.env", "absent", "b/c/.env"].map(|it| root.join(it))
        );
        assert_eq!(hidden.named_paths(&roots), [root.join("absent")]);
    }
}
