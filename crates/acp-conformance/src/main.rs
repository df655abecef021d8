//! `acp-conformance`: plays cases against an agent and says which failed.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command for a terminal"
)]

use acp_conformance::{
    Agent, Case, Options, Outcome, mcp_server, mutations::command::Mutations, play_all,
    profile::Profile, scoreboard::Scoreboard,
};
use anyhow::{Context, Result, bail};
use clap::Parser;
use std::{fs, io, path::PathBuf, process::ExitCode, time::Duration};

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
        /// How the agent is pointed at the fake model: a name, or a file.
        #[arg(long)]
        profile: Option<String>,
        /// How many cases are played at once.
        #[arg(long)]
        jobs: Option<usize>,
        /// The agent's command line.
        #[arg(last = true, required_unless_present = "profile")]
        agent: Vec<String>,
    },
    /// Be an MCP server that logs what it hears: cases give it to agents.
    #[command(hide = true)]
    McpServer {
        /// Where it logs.
        log: PathBuf,
        /// Anything, to be logged.
        words: Vec<String>,
    },
    /// Break the agent in every way there is, and see whether the suite finds just that.
    Mutations(Mutations),
    /// Install the agents that profiles know, play the suite against each, and write how they stand.
    Scoreboard(Scoreboard),
}

fn main() -> ExitCode {
    let (cases, patience, profile, jobs, agent) = match Arguments::parse() {
        Arguments::Run {
            cases,
            patience,
            profile,
            jobs,
            agent,
        } => (cases, patience, profile, jobs, agent),
        Arguments::McpServer { log, words } => {
            let served = mcp_server::serve(&log, &words, io::stdin().lock(), io::stdout().lock());
            return served.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
        }
        Arguments::Mutations(mutations) => return mutate(&mutations),
        Arguments::Scoreboard(scoreboard) => return score(&scoreboard),
    };
    let profile = profile.as_deref().map(Profile::find).transpose();
    let profile = match profile {
        Ok(profile) => profile,
        Err(error) => {
            eprintln!("acp-conformance: {error}");
            return ExitCode::from(2);
        }
    };
    let agent = Agent {
        command: agent,
        profile,
        ..Agent::default()
    };
    let usual = Options::default();
    let options = Options {
        patience: Duration::from_secs(patience),
        jobs: jobs.unwrap_or(usual.jobs),
        ..usual
    };
    match run(&cases, &agent, &options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("acp-conformance: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn mutate(mutations: &Mutations) -> ExitCode {
    match mutations.run(&mut io::stdout(), &|line| eprintln!("{line}")) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("acp-conformance: {error}");
            ExitCode::from(2)
        }
    }
}

fn score(scoreboard: &Scoreboard) -> ExitCode {
    match scoreboard.run(&|line| eprintln!("{line}")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("acp-conformance: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(paths: &[PathBuf], agent: &Agent, options: &Options) -> Result<bool> {
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
    let cases: Vec<Case> = files
        .iter()
        .map(|file| Case::read(file))
        .collect::<Result<_, _>>()?;
    let played = play_all(&cases, agent, options, None, &show).map_err(anyhow::Error::msg)?;
    if let Some(fault) = played
        .outcomes
        .iter()
        .find_map(|outcome| outcome.fault.as_ref())
    {
        bail!("{fault}");
    }
    let passed = played
        .outcomes
        .iter()
        .filter(|outcome| outcome.is_passed())
        .count();
    let failed = cases.len() - passed;
    println!("{passed} passed, {failed} failed in {:?}", played.took);
    Ok(failed == 0)
}

fn show(outcome: &Outcome) {
    if let Some(fault) = &outcome.fault {
        println!("FAULT {}: {fault}", outcome.case);
    } else if outcome.is_passed() {
        println!("ok    {}: {}", outcome.case, outcome.purpose);
        return;
    } else {
        println!("FAIL  {}: {}", outcome.case, outcome.purpose);
    }
    for (rule, finding) in outcome.findings() {
        println!("  {rule}: {finding}");
    }
    if let Some(finding) = &outcome.broken {
        println!("  {finding}");
    }
    for entry in &outcome.transcript {
        let seconds = entry.at.as_secs_f64();
        println!("    {seconds:8.3} {} {}", entry.kind.sign(), entry.text);
    }
}
