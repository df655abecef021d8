//! Command-line program `acp-conformance-dev`: for the authors of the suite.

use acp_conformance::{cleanup_guard::CleanupGuard, helper_command::HelperCommand, report};
use acp_conformance_dev::{mutations::command::MutationsArgs, scoreboard::ScoreboardArgs};
use clap::Parser;
use std::{
    io::{self, Write},
    process::ExitCode,
};

/// Tests the suite acp-conformance itself, and compares agents with it.
#[derive(Parser)]
#[command(version)]
enum DevCommand {
    /// Inject each known fault into an agent and check that exactly the expected rules fail.
    Mutations(MutationsArgs),
    /// Install the agents of the profiles, play the suite against each, and write the results.
    Scoreboard(ScoreboardArgs),
    /// Hidden commands with which the runner starts its own program again.
    #[command(flatten)]
    Helper(HelperCommand),
}

const PROGRAM: &str = "acp-conformance-dev";

fn main() -> ExitCode {
    match run(&DevCommand::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            print_stderr(&format!("{PROGRAM}: {error}"));
            ExitCode::from(2)
        }
    }
}

/// Runs the command; returns false if the mutation table has a gap or a false alarm.
fn run(command: &DevCommand) -> Result<bool, String> {
    // While a guard lives, no agent and no case folder outlives this process.
    let guard = || CleanupGuard::start(PROGRAM);
    match command {
        DevCommand::Mutations(arguments) => {
            let _guard = guard()?;
            arguments.run(&mut io::stdout(), &print_stderr)
        }
        DevCommand::Scoreboard(arguments) => {
            let _guard = guard()?;
            arguments.run(&print_stderr).map(|()| true)
        }
        DevCommand::Helper(command) => {
            let done = command.run().map(|()| true);
            done.map_err(|error| error.to_string())
        }
    }
}

fn print_stderr(line: &str) {
    // stderr may be closed.
    let _ = writeln!(io::stderr(), "{}", report::sanitize_lines(line));
}
