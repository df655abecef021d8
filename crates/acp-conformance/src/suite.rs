//! Plays many cases against one agent, several at once.

use crate::{
    case::Case,
    facts::AgentFacts,
    outcome::CaseOutcome,
    play::{AgentSpec, PlayOptions, play_case},
    preflight::run_preflight,
};
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

/// Result of a suite.
#[derive(Clone, Debug)]
pub struct SuiteResult {
    /// Facts about the agent.
    pub facts: AgentFacts,
    /// Outcomes of the played cases, in their order; if the agent did not answer `initialize`, one more
    /// outcome stands for all cases that need it.
    pub outcomes: Vec<CaseOutcome>,
    /// Duration of the suite.
    pub elapsed: Duration,
    /// Average factor by which time limits were extended because the machine was busy; 1 on a quiet machine.
    pub slowdown: f64,
    /// Time limit for a step that waits; longer than requested if the agent starts slowly.
    pub patience: Duration,
    /// Reason why cases were not played, in several lines: the agent did not answer `initialize`.
    pub unplayed_reason: Option<String>,
}

/// Factor on the duration of the first start that later starts may take.
const START_PATIENCE_FACTOR: u32 = 3;

/// Plays cases against an agent, `options.jobs` at once. `facts` are known facts about the agent; without them,
/// a preflight asks the agent first. If the agent does not answer then, only cases that do not begin with
/// `initialize` are played. `on_outcome` receives the outcomes in the order in which the cases end.
///
/// # Errors
/// If the agent cannot be started, or the runtime cannot be created.
pub fn play_suite(
    cases: &[Case],
    agent: &AgentSpec,
    options: &PlayOptions,
    facts: Option<AgentFacts>,
    on_outcome: &(dyn Fn(&CaseOutcome) + Sync),
) -> Result<SuiteResult, String> {
    let started_at = Instant::now();
    let begun_on_clock = options.clock().now();
    let (facts, mute, options) = match facts {
        Some(facts) => (facts, None, options.clone()),
        None => {
            let preflight = build_runtime()?.block_on(run_preflight(agent, options))?;
            let options = PlayOptions {
                patience: options
                    .patience
                    .max(preflight.startup_time * START_PATIENCE_FACTOR),
                ..options.clone()
            };
            (preflight.facts, preflight.unresponsive, options)
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
    let mut outcomes = run_parallel(options.jobs, cases.len(), &|index| {
        let played = play_case(cases[index], agent, options, &facts);
        let (outcome, _) = build_runtime()?.block_on(played);
        on_outcome(&outcome);
        Ok(outcome)
    })?;
    let mut stopped = None;
    if let Some(mute) = mute.filter(|_| !unreached.is_empty() || cases.is_empty()) {
        stopped = Some(mute.description.clone());
        outcomes.push(mute.into_outcome(&unreached));
    }
    let took = started_at.elapsed();
    Ok(SuiteResult {
        facts,
        outcomes,
        elapsed: took,
        slowdown: slowdown(took, options.clock().now().saturating_sub(begun_on_clock)),
        patience: options.patience,
        unplayed_reason: stopped,
    })
}

/// Plays one case against an agent about which these facts are known.
///
/// # Errors
/// Those of [`play_suite`].
pub fn play_one(
    case: &Case,
    agent: &AgentSpec,
    options: &PlayOptions,
    facts: &AgentFacts,
    on_outcome: &(dyn Fn(&CaseOutcome) + Sync),
) -> Result<CaseOutcome, String> {
    let cases = std::slice::from_ref(case);
    let played = play_suite(cases, agent, options, Some(facts.clone()), on_outcome)?;
    let outcome = played.outcomes.into_iter().next();
    outcome.ok_or_else(|| format!("{} was not played", case.name))
}

/// Calls `work` with each index below `count` on `jobs` threads, and returns the results in order.
///
/// # Errors
/// The first error of `work`, after which no other index is begun.
pub fn run_parallel<T: Send>(
    jobs: usize,
    count: usize,
    work: &(dyn Fn(usize) -> Result<T, String> + Sync),
) -> Result<Vec<T>, String> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut made = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return Ok(made);
            }
            match work(index) {
                Ok(thing) => made.push((index, thing)),
                Err(error) => {
                    // Stop the other workers.
                    next.store(count, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    };
    let made: Result<Vec<_>, String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.clamp(1, count.max(1)))
            .map(|_| scope.spawn(worker))
            .collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| {
            worker
                .join()
                .unwrap_or_else(|_| Err("the runner panicked".to_owned()))
        };
        workers.into_iter().map(join).collect()
    });
    let mut made: Vec<_> = made?.into_iter().flatten().collect();
    made.sort_by_key(|(index, _)| *index);
    Ok(made.into_iter().map(|(_, thing)| thing).collect())
}

/// Returns the real time for each second of the clock that time limits are measured on.
fn slowdown(took: Duration, on_clock: Duration) -> f64 {
    let slowdown = took.as_secs_f64() / on_clock.as_secs_f64();
    // Both durations are zero if nothing was played.
    if slowdown.is_finite() { slowdown } else { 1.0 }
}

fn build_runtime() -> Result<tokio::runtime::Runtime, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(|error| format!("no runtime: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowdown_is_real_time_per_suite_clock() {
        let seconds = Duration::from_secs;
        assert_eq!(slowdown(seconds(6), seconds(2)).to_string(), "3");
        assert_eq!(slowdown(Duration::ZERO, Duration::ZERO).to_string(), "1");
    }
}
