//! Runs the steps of `cargo xtask ci` in order. The first step that fails twice ends the run.

mod busy_loops;
mod options;
mod repeat;
mod report;
mod retries;

pub(crate) use busy_loops::{COMMAND as BUSY_LOOP, spin};
pub(crate) use retries::Retries;

use crate::{clients, steps, test_step, trace};
use anyhow::{Result, bail};
use busy_loops::BusyLoops;
use options::Options;
use report::{RunReport, Stopwatch};

/// One step of `cargo xtask ci`.
pub(crate) struct Step {
    /// Name on the command line.
    pub(crate) name: &'static str,
    /// What it checks.
    pub(crate) what: &'static str,
    run: fn(&mut Retries) -> Result<()>,
}

/// All steps, cheap ones first. Steps that only read the code are not tried twice: they would fail the same way.
pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        what: "the code is formatted",
        run: |_| steps::fmt(),
    },
    Step {
        name: "trace",
        what: "every requirement has a test that names it",
        run: |_| trace::run(&["--missing".to_owned()]),
    },
    Step {
        name: "clippy",
        what: "no warning in any target",
        run: |_| steps::clippy(),
    },
    Step {
        name: "doc",
        what: "the documentation builds, all links lead somewhere",
        run: |_| steps::doc(),
    },
    Step {
        name: "test",
        what: "all tests of all crates, and of the repository itself",
        run: test_step::run,
    },
    Step {
        name: "cases",
        what: "the protocol cases play as they are written",
        run: steps::cases,
    },
    Step {
        name: "mutations",
        what: "each fault of the broken agent makes just those rules fail that it breaks",
        run: steps::mutations,
    },
    Step {
        name: "clients",
        what: "the official TypeScript and Python clients drive a whole session; real MCP servers are used in one",
        run: clients::run,
    },
    Step {
        name: "readme",
        what: "the README's first command does its job with an empty home, and compiles with no other features",
        run: steps::readme,
    },
];

/// Runs `cargo xtask ci` with these arguments.
///
/// # Errors
/// A step failed twice, or the arguments are wrong.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    let _busy = BusyLoops::start(options.beside)?;
    if options.times > 1 {
        return repeat::run(&options);
    }
    let report = run_steps(&options.steps);
    println!("{report}");
    match report.error {
        None => Ok(()),
        Some(error) => Err(error),
    }
}

/// Runs the named steps, or all if none is named, until one fails.
fn run_steps(wanted: &[String]) -> RunReport {
    let mut report = RunReport::default();
    let named = |step: &&Step| wanted.iter().any(|name| name == step.name);
    for step in STEPS.iter().filter(|step| wanted.is_empty() || named(step)) {
        println!("== {}: {}", step.name, step.what);
        let stopwatch = Stopwatch::start();
        let mut retries = Retries::default();
        let result = (step.run)(&mut retries);
        report.add(step.name, &stopwatch, retries);
        if let Err(error) = result {
            report.error = Some(error.context(format!("step {} failed", step.name)));
            break;
        }
    }
    report
}

/// Fails if one of these is not the name of a step.
fn check_names(names: &[String]) -> Result<()> {
    match names
        .iter()
        .find(|name| STEPS.iter().all(|step| step.name != **name))
    {
        Some(unknown) => bail!("there is no step {unknown:?}; `cargo xtask steps` lists them"),
        None => Ok(()),
    }
}
