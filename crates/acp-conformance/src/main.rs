//! `acp-conformance`: tells whether an agent speaks the Agent Client Protocol.

mod cli;

use acp_conformance::{mcp_server, report};
use anyhow::Result;
use clap::Parser;
use cli::{
    Arguments,
    guard::{self, Guard},
    run::run,
    show::show,
    table::{coverage, list, printed},
};
use std::{
    io::{self, Write},
    process::ExitCode,
};

fn main() -> ExitCode {
    let done = match Arguments::parse() {
        Arguments::Run(arguments) => guarded(|| run(&arguments)),
        Arguments::List(arguments) => always(list(&arguments, &mut io::stdout().lock())),
        Arguments::Show(arguments) => always(show(&arguments, &mut io::stdout().lock())),
        Arguments::Coverage(arguments) => always(coverage(&arguments, &mut io::stdout().lock())),
        Arguments::Mutations(arguments) => guarded(|| {
            let done = arguments.run(&mut io::stdout(), &say);
            done.map_err(anyhow::Error::msg)
        }),
        Arguments::Scoreboard(arguments) => guarded(|| {
            let done = arguments.run(&say);
            always(done.map_err(anyhow::Error::msg))
        }),
        Arguments::Guard { folder } => always(guard::wait(&folder)),
        Arguments::McpServer { log, words } => {
            let served = mcp_server::serve(&log, &words, io::stdin().lock(), io::stdout().lock());
            always(served.map_err(anyhow::Error::from))
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("acp-conformance: {error:#}"));
            ExitCode::from(2)
        }
    }
}

/// What starts agents: none of them, and none of their folders, outlives it.
fn guarded(work: impl FnOnce() -> Result<bool>) -> Result<bool> {
    let _guard = Guard::set_up()?;
    work()
}

/// What has no bad end but an error.
fn always(result: Result<()>) -> Result<bool> {
    printed(result).map(|()| true)
}

fn say(line: &str) {
    // Who has closed stderr does not want to know.
    let _ = writeln!(io::stderr(), "{}", report::lines(line));
}
