//! Runs the steps of `cargo xtask ci` in order, and stops at the first step that fails twice.

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

/// A step of `cargo xtask ci`.
pub(crate) struct Step {
    /// Name on the command line.
    pub(crate) name: &'static str,
    /// Description for the usage text.
    pub(crate) what: &'static str,
    run: fn(&mut Retries) -> Result<()>,
}

/// All steps, cheap ones first. Steps that only read the code are not retried: they would fail the same way.
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
        what: "the documentation builds without broken links",
        run: |_| steps::doc(),
    },
    Step {
        name: "test",
        what: "all tests of all crates, and of the repository itself",
        run: test_step::run,
    },
    Step {
        name: "cases",
        what: "the protocol cases pass",
        run: steps::cases,
    },
    Step {
        name: "mutations",
        what: "each fault of the broken agent fails exactly the rules that it breaks",
        run: steps::mutations,
    },
    Step {
        name: "clients",
        what: "the official TypeScript and Python clients drive a whole session; real MCP servers are used in one",
        run: clients::run,
    },
    Step {
        name: "readme",
        what: "the README's first command works with an empty home, and its package compiles with its own features only",
        run: steps::readme,
    },
];

/// Runs `cargo xtask ci` with these arguments.
///
/// # Errors
/// Fails if a step fails twice or the arguments are invalid.
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

/// Runs the steps named in `wanted`, or all if empty, until one fails.
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

/// Checks that each of `names` is the name of a step.
fn check_names(names: &[String]) -> Result<()> {
    match names
        .iter()
        .find(|name| STEPS.iter().all(|step| step.name != **name))
    {
        Some(unknown) => bail!("there is no step {unknown:?}; `cargo xtask steps` lists them"),
        None => Ok(()),
    }
}
