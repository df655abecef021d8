//! The command line.

pub(crate) mod guard;
pub(crate) mod progress;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod table;

use acp_conformance::{
    Case, Requirements, folder, mutations::command::Mutations, near::unknown,
    scoreboard::Scoreboard,
};
use anyhow::{Context, Result, bail};
use clap::Parser;
use std::path::PathBuf;

/// Tells whether an agent speaks the Agent Client Protocol: plays protocol cases against it, over stdio.
#[derive(Parser)]
#[command(
    version,
    after_help = "Examples:\n  acp-conformance run --agent \"my-agent --acp\"\n  acp-conformance run --profile gemini-cli --format html --output report.html"
)]
pub(crate) enum Arguments {
    /// Play cases against an agent. Exit code 0: it keeps the rules, 1: it does not, 2: the run itself failed.
    Run(run::Run),
    /// All rules, with how strongly they are asked for.
    List(table::List),
    /// Each rule with the cases that check it, or why none can.
    Coverage(table::Coverage),
    /// A case that comes along as it is written, or all that is known of a rule.
    Show(show::Show),
    /// Break the agent in every way there is, and see whether the suite finds just that.
    Mutations(Mutations),
    /// Install the agents that profiles know, play the suite against each, and write how they stand.
    Scoreboard(Scoreboard),
    /// Be an MCP server that logs what it hears: cases give it to agents.
    #[command(hide = true)]
    McpServer {
        /// Where it logs.
        log: PathBuf,
        /// Anything, to be logged.
        words: Vec<String>,
    },
    /// Wait until stdin is closed, then end what runs in a folder of cases, and remove it.
    #[command(hide = true)]
    Guard {
        /// The folder.
        folder: PathBuf,
    },
}

/// The table of the rules.
pub(crate) fn requirements() -> Result<Requirements> {
    Requirements::known()
        .map_err(anyhow::Error::msg)
        .context("requirements.toml")
}

/// Cases of files and of folders; of those that come along, if none are named. Every rule they cite is one.
pub(crate) fn cases(paths: &[PathBuf], requirements: &Requirements) -> Result<Vec<Case>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        files.extend(folder::files(path).with_context(|| path.display().to_string())?);
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
                bail!("the case {}: {}", case.name, unknown(rule, "rule", ids));
            }
        }
    }
    Ok(cases)
}
