//! Suite: many cases against one agent, several at once.

use crate::{Agent, Case, Facts, Options, Outcome, play::play, preflight::preflight};
use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// What came of a suite.
#[derive(Clone, Debug)]
pub struct Played {
    /// What the agent has.
    pub facts: Facts,
    /// What came of each case, in the order of the cases.
    pub outcomes: Vec<Outcome>,
    /// How long it took.
    pub took: Duration,
}

/// Play cases against an agent, `options.jobs` at once. `facts`: what is known of the agent already, else it
/// is asked first. `over` is told of each case that is over, in the order in which they end.
///
/// # Errors
/// The agent cannot be started, or no runtime can be made.
pub fn play_all(
    cases: &[Case],
    agent: &Agent,
    options: &Options,
    facts: Option<Facts>,
    over: &(dyn Fn(&Outcome) + Sync),
) -> Result<Played, String> {
    let begun = Instant::now();
    let facts = match facts {
        Some(facts) => facts,
        None => runtime()?.block_on(preflight(agent, options))?,
    };
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(cases.iter().map(|_| None).collect());
    let work = || -> Result<(), String> {
        let runtime = runtime()?;
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(index) else {
                return Ok(());
            };
            let outcome = runtime.block_on(play(case, agent, options, &facts));
            over(&outcome);
            outcomes.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(outcome);
        }
    };
    let jobs = options.jobs.clamp(1, cases.len().max(1));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            let panicked = |_| Err("the runner panicked".to_owned());
            worker.join().unwrap_or_else(panicked)
        })
    })?;
    let outcomes = outcomes
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    Ok(Played {
        facts,
        outcomes: outcomes.into_iter().flatten().collect(),
        took: begun.elapsed(),
    })
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(|error| format!("no runtime: {error}"))
}
