//! Loads the rules and the cases.

use acp_conformance::{Case, Requirements, case_folder, suggestions::unknown_name_message};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;

/// Loads the table of rules.
pub(crate) fn load_requirements() -> Result<Requirements> {
    Requirements::built_in()
        .map_err(anyhow::Error::msg)
        .context("requirements.toml")
}

/// Loads the cases of files and folders, or the built-in cases if `paths` is empty, and checks that every
/// rule they cite exists.
pub(crate) fn load_cases(paths: &[PathBuf], requirements: &Requirements) -> Result<Vec<Case>> {
    let cases = case_folder::cases(paths).map_err(anyhow::Error::msg)?;
    for case in &cases {
        for rule in case.cited_rules() {
            if requirements.rule(rule).is_none() {
                let ids = requirements.rules.iter().map(|rule| &*rule.id);
                bail!(
                    "the case {}: {}",
                    case.name,
                    unknown_name_message(rule, "rule", ids)
                );
            }
        }
    }
    Ok(cases)
}
