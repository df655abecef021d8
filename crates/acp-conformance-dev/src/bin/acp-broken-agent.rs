//! Command-line program `acp-broken-agent`: injects one named fault into a conforming agent, to test test
//! suites.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command for a terminal"
)]

use acp_conformance_dev::{
    broken_agent::{BrokenAgent, exec_bound_agent, run_broken_agent},
    faults,
};
use clap::Parser;
use std::{path::PathBuf, process::ExitCode};

/// Runs a conforming agent behind a proxy that injects one named fault.
#[derive(Parser)]
#[command(
    version,
    after_help = "Example:\n  acp-broken-agent --fault late_update -- turnery acp"
)]
struct BrokenAgentArgs {
    /// Fault to inject; without this, every line passes unchanged.
    #[arg(long, env = "ACP_BROKEN_FAULT")]
    fault: Option<String>,
    /// Print the names of all faults.
    #[arg(long)]
    list: bool,
    /// Record all lines in a new file of this folder.
    #[arg(long)]
    record: Option<PathBuf>,
    /// Replace this process with the agent, which is killed when the parent process ends.
    #[arg(long, hide = true)]
    bound: bool,
    /// Command line of the conforming agent.
    #[arg(last = true, required_unless_present = "list")]
    agent: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = BrokenAgentArgs::parse();
    if arguments.list {
        for fault in faults::all() {
            println!("{}", fault.name);
        }
        return ExitCode::SUCCESS;
    }
    if arguments.bound {
        return exit_with_error(&exec_bound_agent(&arguments.agent));
    }
    let fault = match arguments.fault.as_deref() {
        None | Some("") => None,
        Some(name) => match faults::find(name) {
            Some(fault) => Some(fault),
            None => {
                return exit_with_error(&format!("there is no fault {name:?}; --list names them"));
            }
        },
    };
    let broken = BrokenAgent {
        fault,
        recording_dir: arguments.record,
        command: arguments.agent,
    };
    run_broken_agent(&broken).unwrap_or_else(|error| exit_with_error(&error))
}

fn exit_with_error(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("acp-broken-agent: {error}");
    ExitCode::from(2)
}
