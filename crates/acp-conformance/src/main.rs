//! Command-line program `acp-conformance`: checks that an agent speaks the Agent Client Protocol.

mod cli;

use acp_conformance::{mcp_server, report};
use anyhow::Result;
use clap::Parser;
use cli::{
    CliCommand,
    guard::{self, CleanupGuard},
    rules::{ignore_broken_pipe, print_coverage, print_rules},
    run::run,
    show::print_case_or_rule,
};
use std::{
    io::{self, Write},
    process::ExitCode,
};

fn main() -> ExitCode {
    let done = match CliCommand::parse() {
        CliCommand::Run(arguments) => run_guarded(|| run(&arguments)),
        CliCommand::List(arguments) => {
            succeed_unless_error(print_rules(&arguments, &mut io::stdout().lock()))
        }
        CliCommand::Show(arguments) => {
            succeed_unless_error(print_case_or_rule(&arguments, &mut io::stdout().lock()))
        }
        CliCommand::Coverage(arguments) => {
            succeed_unless_error(print_coverage(&arguments, &mut io::stdout().lock()))
        }
        CliCommand::Mutations(arguments) => run_guarded(|| {
            let done = arguments.run(&mut io::stdout(), &print_stderr);
            done.map_err(anyhow::Error::msg)
        }),
        CliCommand::Scoreboard(arguments) => run_guarded(|| {
            let done = arguments.run(&print_stderr);
            succeed_unless_error(done.map_err(anyhow::Error::msg))
        }),
        CliCommand::Guard { folder } => succeed_unless_error(guard::wait_and_clean_up(&folder)),
        CliCommand::McpServer { log, words } => {
            let served = mcp_server::serve(&log, &words, io::stdin().lock(), io::stdout().lock());
            succeed_unless_error(served.map_err(anyhow::Error::from))
        }
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

/// Runs work that starts agents; no agent and no case folder outlives this process.
fn run_guarded(work: impl FnOnce() -> Result<bool>) -> Result<bool> {
    let _guard = CleanupGuard::start()?;
    work()
}

/// Returns true unless `result` is an error other than a broken pipe.
fn succeed_unless_error(result: Result<()>) -> Result<bool> {
    ignore_broken_pipe(result).map(|()| true)
}

fn print_stderr(line: &str) {
    // stderr may be closed.
    let _ = writeln!(io::stderr(), "{}", report::sanitize_lines(line));
}
