//! Defines the command line.

mod load;
pub(crate) mod progress;
pub(crate) mod rules;
pub(crate) mod run;
pub(crate) mod show;

use acp_conformance::helper_command::HelperCommand;
use clap::Parser;

/// Checks that an agent speaks the Agent Client Protocol: plays protocol cases against it, over stdio.
#[derive(Parser)]
#[command(
    version,
    after_help = "Examples:\n  acp-conformance run --agent \"my-agent --acp\"\n  acp-conformance run --profile gemini-cli --format html --output report.html"
)]
pub(crate) enum CliCommand {
    /// Play cases against an agent. Exit code 0: it keeps the rules, 1: it does not, 2: the run itself
    /// failed.
    Run(Box<run::RunArgs>),
    /// List all rules with their levels.
    List(rules::ListArgs),
    /// List each rule with the cases that check it, or the reason why no case can.
    Coverage(rules::CoverageArgs),
    /// Show the text of a built-in case, or a rule with its source and cases.
    Show(show::ShowArgs),
    /// Hidden commands that run this program again as a helper process: cleanup guard or MCP server.
    #[command(flatten)]
    Helper(HelperCommand),
}
