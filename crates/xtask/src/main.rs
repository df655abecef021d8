//! `cargo xtask`: the repository's own commands. `cargo xtask ci` runs everything and installs what it needs.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command for a terminal"
)]

mod ci;
mod clients;
mod link_order;
mod model_requests;
mod model_servers;
mod packages;
mod postgres;
mod steps;
mod tee;
mod test_step;
mod trace;
mod workspace;

use anyhow::{Result, bail};
use std::{env, process::ExitCode};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci [STEP ...]   run all steps, or only these; what can fail by chance is retried once, alone
     --times N    run the steps N times and print a table
     --beside N   run N busy loops at the same time
  link-order      regenerate crates/turnery/link_order.ld: builds the program, and runs it under valgrind
  models          regenerate the table in docs/models.md
  postgres -- COMMAND ...
                  run a command beside a scratch PostgreSQL server, whose address is in POSTGRES_TEST_URL
  schemas         regenerate the files in schemas/ from the Rust types
  steps           list the steps of ci
  trace           list the tests that prove each requirement; fails if one has none
  trace --missing list the requirements without a test
  trace ID ...    show these requirements";

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
        Some("link-order") => link_order::write(),
        Some("models") => trace::write_model_page(),
        Some("postgres") => postgres::run(&args.collect::<Vec<_>>()),
        Some("schemas") => steps::write_schemas(),
        Some("trace") => trace::run(&args.collect::<Vec<_>>()),
        Some(ci::BUSY_LOOP) => ci::spin(),
        Some("steps") => {
            for step in ci::STEPS {
                println!("{:13} {}", step.name, step.description);
            }
            Ok(())
        }
        Some("--help" | "-h") => {
            println!("{USAGE}");
            Ok(())
        }
        Some(other) => bail!("unknown command {other:?}\n{USAGE}"),
        None => bail!("missing command\n{USAGE}"),
    }
}
