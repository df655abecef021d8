//! Loads the rules and the cases.

use acp_conformance::{Case, Requirements, case_folder, suggestions::unknown_name_message};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;

/// Loads the table of rules.
pub(crate) fn load_requirements() -> Result<Requirements> {
    Requirements::known()
        .map_err(anyhow::Error::msg)
        .context("requirements.toml")
}

/// Loads the cases of files and folders, or the built-in cases if `paths` is empty, and checks that every
/// rule they cite exists.
pub(crate) fn load_cases(paths: &[PathBuf], requirements: &Requirements) -> Result<Vec<Case>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        files.extend(case_folder::files(path).with_context(|| path.display().to_string())?);
    }
    files.sort();
    let cases: Vec<Case> = if paths.is_empty() {
        acp_conformance::embedded::cases()?
    } else {
        let cases = files.iter().map(|file| Case::read(file));
        cases.collect::<Result<_, _>>()?
    };
    if cases.is_empty() {
        bail!("there is no case in {paths:?}");
    }
    for case in &cases {
        for rule in case.rules() {
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
