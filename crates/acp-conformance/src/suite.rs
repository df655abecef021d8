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
    /// How many times longer than written the bounds of the cases were, on average, because other programs kept the
    /// machine busy; 1 on a quiet machine.
    pub slowdown: f64,
    /// How long a step waited: longer than was asked for where the agent starts slowly.
    pub patience: Duration,
    /// Why the run ended before the cases, in words over several lines: the agent does not answer `initialize`.
    pub stopped: Option<String>,
}

/// So many times as long as its first start an agent may take for each other one.
const STARTS: u32 = 3;

/// Play cases against an agent, `options.jobs` at once. `facts`: what is known of the agent already, else it
/// is asked first. If it does not answer then, only cases that do not begin so are played. `over` is told of each case
/// that is over, in the order in which they end.
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
    let begun_on_clock = options.pace().now();
    let (facts, mute, options) = match facts {
        Some(facts) => (facts, None, options.clone()),
        None => {
            let preflight = runtime()?.block_on(preflight(agent, options))?;
            let options = Options {
                patience: options.patience.max(preflight.start * STARTS),
                ..options.clone()
            };
            (preflight.facts, preflight.mute, options)
        }
    };
    let options = &options;
    let begins = |case: &&Case| {
        case.lines
            .iter()
            .any(|line| line.text.contains("initialize"))
    };
    let (unreached, cases): (Vec<&Case>, Vec<&Case>) = cases
        .iter()
        .partition(|case| mute.is_some() && begins(case));
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(cases.iter().map(|_| None).collect());
    let work = || -> Result<(), String> {
        let runtime = runtime()?;
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(index).copied() else {
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
    let mut outcomes: Vec<Outcome> = outcomes.into_iter().flatten().collect();
    let mut stopped = None;
    if let Some(mute) = mute.filter(|_| !unreached.is_empty() || cases.is_empty()) {
        stopped = Some(mute.why.clone());
        outcomes.push(mute.outcome(&unreached));
    }
    let took = begun.elapsed();
    Ok(Played {
        facts,
        outcomes,
        took,
        slowdown: slowdown(took, options.pace().now().saturating_sub(begun_on_clock)),
        patience: options.patience,
        stopped,
    })
}

/// Real time for each second of the clock that bounds are measured on.
fn slowdown(took: Duration, on_clock: Duration) -> f64 {
    let slowdown = took.as_secs_f64() / on_clock.as_secs_f64();
    // Neither clock ran in a run without anything to play.
    if slowdown.is_finite() { slowdown } else { 1.0 }
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(|error| format!("no runtime: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowdown_is_real_time_by_the_clock_of_bounds() {
        let seconds = Duration::from_secs;
        assert_eq!(slowdown(seconds(6), seconds(2)).to_string(), "3");
        assert_eq!(slowdown(Duration::ZERO, Duration::ZERO).to_string(), "1");
    }
}
