//! Determines the files that rules hide from a tool, including those that its arguments do not name, such as
//! results of a search, entries of a list or hints of an edit.

use super::{
    Policy, Rule,
    rule::{READ_GROUP, RulePattern},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use turnery_engine::{ToolError, ToolErrorKind};

/// Rules that deny one tool reading files. The default hides nothing.
#[derive(Clone, Debug, Default)]
pub struct HiddenFiles(Arc<[Rule]>);

impl Policy {
    /// Returns the files that this policy hides from `tool`.
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

    fn find_rule(&self, path: &Path, roots: &[PathBuf]) -> Option<&Rule> {
        self.0.iter().find(|rule| rule.denies_file(path, roots))
    }
}

/// Returns the message that tells the model which rule denied its call.
pub(super) fn denial_message(rule: &Rule) -> String {
    format!("the rule {rule} denies this: do it another way, or ask the user to change the rule")
}
