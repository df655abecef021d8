//! `acp-broken-agent`: a right agent made wrong in one named way, to test test suites with.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command for a terminal"
)]

use acp_conformance::{
    broken::{Broken, become_bound, run},
    faults,
};
use clap::Parser;
use std::{path::PathBuf, process::ExitCode};

/// Starts a right agent and breaks what passes, in one named way.
#[derive(Parser)]
#[command(
    version,
    after_help = "Example:\n  acp-broken-agent --fault late_update -- turnery acp"
)]
struct Arguments {
    /// What is to be wrong; without it nothing is.
    #[arg(long, env = "ACP_BROKEN_FAULT")]
    fault: Option<String>,
    /// Print the names of all faults.
    #[arg(long)]
    list: bool,
    /// Write all lines into a file of this folder.
    #[arg(long)]
    record: Option<PathBuf>,
    /// Become the agent, and end with the process that started this one.
    #[arg(long, hide = true)]
    bound: bool,
    /// The right agent's command line.
    #[arg(last = true, required_unless_present = "list")]
    agent: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.list {
        for fault in faults::all() {
            println!("{}", fault.name);
        }
        return ExitCode::SUCCESS;
    }
    if arguments.bound {
        return failed(&become_bound(&arguments.agent));
    }
    let fault = match arguments.fault.as_deref() {
        None | Some("") => None,
        Some(name) => match faults::named(name) {
            Some(fault) => Some(fault),
            None => return failed(&format!("there is no fault {name:?}; --list names them")),
        },
    };
    let broken = Broken {
        fault,
        record: arguments.record,
        command: arguments.agent,
    };
    run(&broken).unwrap_or_else(|error| failed(&error))
}

fn failed(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("acp-broken-agent: {error}");
    ExitCode::from(2)
}
