//! `acp-conformance`: tells whether an agent speaks the Agent Client Protocol.

mod cli;

use acp_conformance::mcp_server;
use anyhow::Result;
use clap::Parser;
use cli::{
    Arguments,
    run::run,
    table::{coverage, list, printed},
};
use std::{
    io::{self, Write},
    process::ExitCode,
};

fn main() -> ExitCode {
    let done = match Arguments::parse() {
        Arguments::Run(arguments) => run(&arguments),
        Arguments::List(arguments) => always(list(&arguments, &mut io::stdout().lock())),
        Arguments::Coverage(arguments) => always(coverage(&arguments, &mut io::stdout().lock())),
        Arguments::Mutations(arguments) => arguments
            .run(&mut io::stdout(), &say)
            .map_err(anyhow::Error::msg),
        Arguments::Scoreboard(arguments) => always(arguments.run(&say).map_err(anyhow::Error::msg)),
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

/// What has no bad end but an error.
fn always(result: Result<()>) -> Result<bool> {
    printed(result).map(|()| true)
}

fn say(line: &str) {
    // Who has closed stderr does not want to know.
    let _ = writeln!(io::stderr(), "{line}");
}
