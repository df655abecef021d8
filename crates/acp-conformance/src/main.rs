//! `acp-conformance`: plays cases against an agent and says which failed.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command for a terminal"
)]

use acp_conformance::{Agent, Case, play};
use anyhow::{Context, Result, bail};
use clap::Parser;
use std::{fs, path::PathBuf, process::ExitCode, time::Duration};

/// Play protocol cases against an ACP agent.
#[derive(Parser)]
#[command(
    version,
    after_help = "Example:\n  acp-conformance run conformance/cases -- turnery acp"
)]
enum Arguments {
    /// Play cases: files, or folders of `.case` files.
    Run {
        /// Cases to play.
        #[arg(required = true)]
        cases: Vec<PathBuf>,
        /// Seconds to wait for a line.
        #[arg(long, default_value_t = 20)]
        patience: u64,
        /// The agent's command line.
        #[arg(last = true, required = true)]
        agent: Vec<String>,
    },
}

fn main() -> ExitCode {
    let Arguments::Run {
        cases,
        patience,
        agent,
    } = Arguments::parse();
    let agent = Agent {
        command: agent,
        patience: Duration::from_secs(patience),
    };
    match run(&cases, &agent) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("acp-conformance: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(paths: &[PathBuf], agent: &Agent) -> Result<bool> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            for entry in fs::read_dir(path).with_context(|| path.display().to_string())? {
                let file = entry?.path();
                if file
                    .extension()
                    .is_some_and(|extension| extension == "case")
                {
                    files.push(file);
                }
            }
        } else {
            files.push(path.clone());
        }
    }
    files.sort();
    if files.is_empty() {
        bail!("no case to play in {paths:?}");
    }
    let mut failed = 0;
    for file in &files {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let case = Case::parse(&text).with_context(|| file.display().to_string())?;
        match play(&case, agent) {
            Ok(()) => println!("ok    {}: {}", file.display(), case.purpose),
            Err(failure) => {
                failed += 1;
                println!("FAIL  {}: {}\n{failure}", file.display(), case.purpose);
            }
        }
    }
    println!("{} passed, {failed} failed", files.len() - failed);
    Ok(failed == 0)
}
