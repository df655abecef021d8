//! `cargo xtask`: the repository's own commands. `cargo xtask ci` runs everything and installs what it needs.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command for a terminal"
)]

mod ci;
mod clients;
mod steps;
mod tee;
mod test_step;
mod trace;

use anyhow::{Result, bail};
use std::{env, process::ExitCode};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci [STEP ...]   run all checks, or only these steps; what fails is run once more, alone
     --times N    run all of it N times and print a table
     --beside N   with N busy loops beside it
  schemas         write the files in schemas/ anew from the Rust types
  steps           list the steps of ci
  trace           which test proves which requirement; fails when one has no test
  trace --missing those that have none
  trace ID ...    only these";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut args = env::args().skip(1);
    match args.next().as_deref() {
        Some("ci") => ci::run(&args.collect::<Vec<_>>()),
        Some("schemas") => steps::write_schemas(),
        Some("trace") => trace::run(&args.collect::<Vec<_>>()),
        Some(ci::BUSY_LOOP) => ci::spin(),
        Some("steps") => {
            for step in ci::STEPS {
                println!("{:10} {}", step.name, step.what);
            }
            Ok(())
        }
        Some("--help" | "-h") => {
            println!("{USAGE}");
            Ok(())
        }
        Some(other) => bail!("there is no command {other:?}\n{USAGE}"),
        None => bail!("say what to do\n{USAGE}"),
    }
}
