//! Simulates processes that share a store: their lanes, leases, heartbeats, journals, commits and effects.
//!
//! A schedule is a pure function of its seed. It interleaves the requests of up to four processes on two machines, which
//! crash, are suspended, and have clocks of their own; requests and answers are lost, delayed and repeated. Each request
//! takes effect as a whole, or statement by statement, on a real store or on a model of one, whose answers are then
//! checked ([`history`]).
//!
//! `TURNERY_SCHEDULES` is the number of schedules for each store, and `TURNERY_SCHEDULE_SEED` runs a single one.

mod agent;
mod backend;
mod coverage;
mod flaws;
mod history;
mod loops;
pub(crate) mod machine;
mod promise;
mod request;
mod schedule;
mod world;

pub(crate) use backend::{
    Backend, BackendKind, Driver, MAX_PROCESSES, SimulatedClock, StoreBackend, poll_by_hand,
};
pub(crate) use flaws::Flaw;
pub(crate) use promise::Check;
#[cfg(feature = "postgres")]
pub(crate) use {
    backend::ProcessTime,
    request::{Progress, Request, Response},
};

use backend::memory_backend;
use coverage::{Coverage, Situation};
use schedule::Schedule;
use std::{
    env,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

/// Number of schedules in which everything happens.
const ENOUGH: u64 = 1_000;

/// Runs schedules on all processors. Panics at the first violation, with the shortest schedule that shows it.
/// Everything must happen in them, except for `never`.
pub(crate) fn explore<B: Backend>(
    name: &str,
    count: u64,
    never: &[Situation],
    new_backend: impl Fn() -> B + Sync,
) {
    let number = |name: &str| {
        env::var(name)
            .ok()
            .map(|value| value.parse().expect("a number"))
    };
    let seed: Option<u64> = number("TURNERY_SCHEDULE_SEED");
    let count = number("TURNERY_SCHEDULES").unwrap_or(count);
    let (first, end) = seed.map_or((0, count), |seed| (seed, seed + 1));
    let next = AtomicU64::new(first);
    let coverage = Mutex::new(Coverage::default());
    let run_all = || {
        let mut backend = new_backend();
        let mut own_coverage = Coverage::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                break;
            }
            let schedule = Schedule::new(seed);
            match world::run(&mut backend, None, &schedule) {
                Ok(found) => own_coverage.add(&found),
                Err(violation) => {
                    next.store(end, Ordering::Relaxed);
                    let run = |it: &Schedule| world::run(&mut backend, None, it).map(drop);
                    let (shortest, violation) = schedule.shrink(violation, run);
                    let trace = world::trace(&mut backend, &shortest).join("\n");
                    panic!("{name}, TURNERY_SCHEDULE_SEED={seed}, {violation}\n{trace}");
                }
            }
        }
        coverage.lock().unwrap().add(&own_coverage);
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(run_all);
        }
    });
    let coverage = coverage.into_inner().unwrap();
    println!("{name}: {} schedules, {coverage:?}", end - first);
    let mut missing = coverage.missing();
    missing.retain(|it| !never.contains(it));
    assert!(
        end - first < ENOUGH || missing.is_empty(),
        "never happens: {missing:?}"
    );
}

/// Checks that each flaw is found by one of the checks that are named with it, within this number of schedules.
pub(crate) fn find_flaws(limit: u64, flaws: &[(Flaw, &[Check])], mut backend: impl Backend) {
    let mut missed = Vec::new();
    for (flaw, checks) in flaws {
        let found = (0..limit).find_map(|seed| {
            let violation = world::run(&mut backend, Some(*flaw), &Schedule::new(seed)).err()?;
            Some((seed, violation))
        });
        match found {
            Some((seed, violation)) if checks.contains(&violation.check) => {
                println!("{flaw:?}: found by schedule {seed}: {violation}");
            }
            other => missed.push(format!("{flaw:?}: {other:?}")),
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Flaws of every store, with the checks that find them.
pub(crate) const FLAWS: [(Flaw, &[Check]); 21] = [
    (Flaw::CommitWithoutFence, &[Check::OnlyHolderWrites]),
    (Flaw::LostAppendConfirmed, &[Check::OnlyHolderWrites]),
    (
        Flaw::AppendWithoutFence,
        &[
            Check::OnlyHolderWrites,
            Check::RefusalChangesNothing,
            Check::JournalIsKept,
        ],
    ),
    (
        Flaw::ReleaseWithoutFence,
        &[
            Check::OnlyHolderWrites,
            Check::LivingHolderIsKept,
            Check::JournalIsKept,
        ],
    ),
    (Flaw::CommitWithoutHead, &[Check::HeadIsCompared]),
    (Flaw::PartialCommit, &[Check::CommitIsWhole]),
    (Flaw::CommitWithoutEffects, &[Check::EffectIsKept]),
    (Flaw::CommitForgotten, &[Check::CommitIsWhole]),
    (Flaw::RetryRefused, &[Check::CommitIsStoredOnce]),
    (Flaw::RetryStoredTwice, &[Check::CommitIsStoredOnce]),
    (Flaw::RefusedCommitStored, &[Check::RefusalChangesNothing]),
    (Flaw::LeaseTooShort, &[Check::LivingHolderIsKept]),
    (Flaw::LeaseNeverOver, &[Check::DeadHolderIsReplaced]),
    (Flaw::HeartbeatIgnored, &[Check::LivingHolderIsKept]),
    (Flaw::LifeIgnored, &[Check::LivingHolderIsKept]),
    (Flaw::DeathIgnored, &[Check::DeadHolderIsReplaced]),
    (Flaw::GenerationRepeated, &[Check::GenerationsGrow]),
    (Flaw::NumberForgotten, &[Check::NumbersAreNotReused]),
    (Flaw::DeletedInUse, &[Check::SessionInUseIsKept]),
    (Flaw::EffectTakenTwice, &[Check::EffectHasOneTaker]),
    (Flaw::EffectNotFinished, &[Check::EffectIsPending]),
];

// proves: S1, S2, S3, S5, S6, S8, UP-27
#[test]
fn schedules_of_memory_store_are_serialisable() {
    let never = [Situation::BeginningJournalled];
    explore("the store in memory", 40_000, &never, memory_backend);
}

#[test]
fn flaws_of_memory_store_are_found() {
    find_flaws(2_000, &FLAWS, memory_backend());
}
