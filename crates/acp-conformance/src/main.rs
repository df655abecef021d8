//! Command-line program `acp-conformance`: checks that an agent speaks the Agent Client Protocol.

mod cli;

use acp_conformance::{cleanup_guard::CleanupGuard, report};
use anyhow::Result;
use clap::Parser;
use cli::{
    CliCommand,
    rules::{ignore_broken_pipe, print_coverage, print_rules},
    run::{RunArgs, run},
    show::print_case_or_rule,
};
use std::{
    io::{self, Write},
    process::ExitCode,
};

fn main() -> ExitCode {
    let done = match CliCommand::parse() {
        CliCommand::Run(arguments) => run_guarded(&arguments),
        CliCommand::List(arguments) => {
            succeed_unless_error(print_rules(&arguments, &mut io::stdout().lock()))
        }
        CliCommand::Show(arguments) => {
            succeed_unless_error(print_case_or_rule(&arguments, &mut io::stdout().lock()))
        }
        CliCommand::Coverage(arguments) => {
            succeed_unless_error(print_coverage(&arguments, &mut io::stdout().lock()))
        }
        CliCommand::Helper(command) => command.run().map(|()| true).map_err(Into::into),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            print_stderr(&format!("acp-conformance: {error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Plays cases; no agent and no case folder outlives this process.
fn run_guarded(arguments: &RunArgs) -> Result<bool> {
    let _guard = CleanupGuard::start("acp-conformance").map_err(anyhow::Error::msg)?;
    run(arguments)
}

/// Returns true unless `result` is an error other than a broken pipe.
fn succeed_unless_error(result: Result<()>) -> Result<bool> {
    ignore_broken_pipe(result).map(|()| true)
}

fn print_stderr(line: &str) {
    // stderr may be closed.
    let _ = writeln!(io::stderr(), "{}", report::sanitize_lines(line));
}
