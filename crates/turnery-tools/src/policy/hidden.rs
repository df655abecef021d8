//! Hidden: the files that rules keep from a tool, also where its arguments do not name them: what
//! a search, a list or the hint of an edit would show of them.

use super::{
    Policy, Rule,
    rule::{Pattern, READ},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use turnery_engine::{FailureKind, ToolFailure};

/// The rules against reading files that hold for one tool. The default hides nothing.
#[derive(Clone, Debug, Default)]
pub struct Hidden(Arc<[Rule]>);

impl Policy {
    /// What this policy hides from `tool`.
    #[must_use]
    pub fn hidden_from(&self, tool: &str) -> Hidden {
        let rules = self.denied().iter().filter(|rule| {
            rule.is_about(tool, READ) && matches!(rule.pattern, Some(Pattern::Files { .. }))
        });
        Hidden(rules.cloned().collect())
    }
}

impl Hidden {
    /// Whether a file is hidden, itself or by a folder above it. `path` is resolved.
    pub(crate) fn hides(&self, path: &Path, roots: &[PathBuf]) -> bool {
        self.rule(path, roots).is_some()
    }

    /// The failure of a call that names a hidden file.
    pub(crate) fn check(&self, path: &Path, roots: &[PathBuf]) -> Result<(), ToolFailure> {
        match self.rule(path, roots) {
            None => Ok(()),
            Some(rule) => Err(ToolFailure {
                kind: FailureKind::Denied,
                message: denial(rule),
                details: None,
            }),
        }
    }

    fn rule(&self, path: &Path, roots: &[PathBuf]) -> Option<&Rule> {
        self.0.iter().find(|rule| rule.denies_file(path, roots))
    }
}

/// What the model is told of a rule that denies.
pub(super) fn denial(rule: &Rule) -> String {
    format!("the rule {rule} denies this: do it another way, or ask the user to change the rule")
}
