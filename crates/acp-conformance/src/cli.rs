//! Defines the command line.

pub(crate) mod progress;
pub(crate) mod rules;
pub(crate) mod run;
pub(crate) mod show;

use acp_conformance::{
    Case, Requirements, case_folder, helper_command::HelperCommand,
    suggestions::unknown_name_message,
};
use anyhow::{Context, Result, bail};
use clap::Parser;
use std::path::PathBuf;

/// Checks that an agent speaks the Agent Client Protocol: plays protocol cases against it, over stdio.
#[derive(Parser)]
#[command(
    version,
    after_help = "Examples:\n  acp-conformance run --agent \"my-agent --acp\"\n  acp-conformance run --profile gemini-cli --format html --output report.html"
)]
pub(crate) enum CliCommand {
    /// Play cases against an agent. Exit code 0: it keeps the rules, 1: it does not, 2: the run itself
    /// failed.
    Run(run::RunArgs),
    /// List all rules with their levels.
    List(rules::ListArgs),
    /// List each rule with the cases that check it, or the reason why no case can.
    Coverage(rules::CoverageArgs),
    /// Show the text of a built-in case, or a rule with its source and cases.
    Show(show::ShowArgs),
    /// Commands that the runner starts itself with.
    #[command(flatten)]
    Helper(HelperCommand),
}

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
