//! Runs the steps of `cargo xtask ci` in order until one fails. Steps that run programs retry their failed
//! parts once.

mod busy_loops;
mod options;
mod repeat;
mod report;
mod retries;

pub(crate) use busy_loops::{COMMAND as BUSY_LOOP, spin};
pub(crate) use retries::Retries;

use crate::{clients, model_requests, model_servers, steps, test_step, trace};
use anyhow::{Result, bail};
use busy_loops::BusyLoops;
use options::CiOptions;
use report::{RunReport, Stopwatch};

/// A step of `cargo xtask ci`.
pub(crate) struct CiStep {
    /// Name on the command line.
    pub(crate) name: &'static str,
    /// Sentence about the check; printed by `cargo xtask steps`, and when the step begins.
    pub(crate) description: &'static str,
    run: fn(&mut Retries) -> Result<()>,
}

/// All steps, cheap ones first. Steps that only read the code are not retried: they would fail the same way.
pub(crate) const STEPS: &[CiStep] = &[
    step("fmt", "the code is formatted", |_| steps::fmt()),
    step(
        "trace",
        "every requirement has a test that names it",
        |_| trace::run(&["--missing".to_owned()]),
    ),
    step("clippy", "no warning in any target", |_| steps::clippy()),
    step(
        "doc",
        "the documentation builds without broken links",
        |_| steps::doc(),
    ),
    step(
        "test",
        "all tests of all crates, and of the repository itself",
        test_step::run,
    ),
    step("cases", "the protocol cases pass", steps::cases),
    step(
        "mutations",
        "each fault of the broken agent fails exactly the rules that it breaks",
        steps::mutations,
    ),
    step(
        "clients",
        "the official TypeScript and Python clients drive a whole session; real MCP servers are used in one",
        clients::run,
    ),
    step(
        "requests",
        "requests to models have the types of the official SDKs",
        model_requests::run,
    ),
    step(
        "model-servers",
        "model servers of others are used: a mock of all providers, and a real model on llama.cpp",
        model_servers::run,
    ),
    step(
        "readme",
        "the README's first command works with an empty home, and its package compiles with its own features only",
        steps::readme,
    ),
];

const fn step(
    name: &'static str,
    what: &'static str,
    run: fn(&mut Retries) -> Result<()>,
) -> CiStep {
    CiStep {
        name,
        description: what,
        run,
    }
}

/// Runs `cargo xtask ci` with these arguments.
///
/// # Errors
/// Fails if a step fails or the arguments are invalid.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = CiOptions::parse(args)?;
    let _busy = BusyLoops::start(options.busy_loops)?;
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
    let named = |step: &&CiStep| wanted.iter().any(|name| name == step.name);
    for step in STEPS.iter().filter(|step| wanted.is_empty() || named(step)) {
        println!("== {}: {}", step.name, step.description);
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
