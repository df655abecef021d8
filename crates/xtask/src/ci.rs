//! ci: the steps, in order, each with its time. The first that fails ends the run.

use crate::{clients, steps, trace};
use anyhow::{Context, Result, bail};
use std::time::Instant;

/// One step of `cargo xtask ci`.
pub(crate) struct Step {
    /// What it is called on the command line.
    pub(crate) name: &'static str,
    /// What it checks.
    pub(crate) what: &'static str,
    run: fn() -> Result<()>,
}

/// All steps, cheap ones first.
pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        what: "the code is formatted",
        run: steps::fmt,
    },
    Step {
        name: "trace",
        what: "every requirement has a test that names it",
        run: || trace::run(&["--missing".to_owned()]),
    },
    Step {
        name: "clippy",
        what: "no warning in any target",
        run: steps::clippy,
    },
    Step {
        name: "doc",
        what: "the documentation builds, all links lead somewhere",
        run: steps::doc,
    },
    Step {
        name: "test",
        what: "all tests of all crates, and of the repository itself",
        run: steps::test,
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
        what: "the README's first command does its job with an empty home and no network",
        run: steps::readme,
    },
];

/// Run all steps, or those named.
pub(crate) fn run(wanted: &[String]) -> Result<()> {
    if let Some(unknown) = wanted
        .iter()
        .find(|name| STEPS.iter().all(|step| step.name != **name))
    {
        bail!("there is no step {unknown:?}; `cargo xtask steps` lists them");
    }
    let begun = Instant::now();
    let mut times = Vec::new();
    let named = |step: &&Step| wanted.iter().any(|name| name == step.name);
    let steps = STEPS.iter().filter(|step| wanted.is_empty() || named(step));
    for step in steps {
        println!("== {}: {}", step.name, step.what);
        let started = Instant::now();
        (step.run)().with_context(|| format!("step {} failed", step.name))?;
        times.push(format!("{} {}s", step.name, started.elapsed().as_secs()));
    }
    println!(
        "== all passed in {}s: {}",
        begun.elapsed().as_secs(),
        times.join(", ")
    );
    Ok(())
}
