//! Explores every interleaving of inputs from a hostile host, and checks the invariants after each step.

mod inputs;
mod invariants;
mod scenario;
mod simulated_host;

use super::{Effect, Input, Loop, seeded_fault::SeededFault};
use crate::Timestamp;
use invariants::InvariantChecker;
use scenario::Scenario;
use simulated_host::SimulatedHost;
use std::{
    collections::{BTreeSet, HashSet},
    fmt::{self, Write as _},
    hash::{DefaultHasher, Hasher as _},
};

#[derive(Clone)]
struct ExplorerState {
    machine: Loop,
    host: SimulatedHost,
    checker: InvariantChecker,
}

struct Exploration {
    states: usize,
    endings: BTreeSet<String>,
}

struct Fingerprint(DefaultHasher);

impl fmt::Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

impl ExplorerState {
    fn start(scene: Scenario, fault: Option<SeededFault>) -> Result<Self, String> {
        let mut out = Vec::new();
        let mut machine = Loop::start(scene.spec(), now(), &mut out);
        machine.seeded_fault = fault;
        let mut node = Self {
            machine,
            host: SimulatedHost::new(scene),
            checker: InvariantChecker::new(),
        };
        node.check_effects(out)?;
        Ok(node)
    }

    fn feed(&mut self, input: Input) -> Result<(), String> {
        self.host.observe_input(&input);
        self.checker.observe_input(&input);
        let mut out = Vec::new();
        self.machine.handle_input(now(), input.clone(), &mut out);
        let silent = out.is_empty();
        self.check_effects(out)?;
        match input {
            Input::ToolUpdate { .. }
            | Input::ToolOutput { .. }
            | Input::ToolProgress { .. }
            | Input::PlanUpdated { .. }
            | Input::ChildUsageReported { .. }
            | Input::ModelDelta(_)
            | Input::ModelSilent { .. }
                if silent =>
            {
                Err(format!("what is said is shown: {input:?}"))
            }
            _ => Ok(()),
        }
    }

    fn check_effects(&mut self, effects: Vec<Effect>) -> Result<(), String> {
        for effect in effects {
            self.checker.check_effect(&mut self.host, effect)?;
        }
        if self.machine.is_over() == self.host.is_over {
            Ok(())
        } else {
            Err("exactly one Finish: the machine is over without one".to_owned())
        }
    }

    fn fingerprint(&self) -> u64 {
        let mut fingerprint = Fingerprint(DefaultHasher::new());
        self.machine.write_state(&mut fingerprint).unwrap();
        write!(fingerprint, "{:?}{:?}", self.host, self.checker).unwrap();
        fingerprint.0.finish()
    }

    /// Checks that inputs that do not fit the state change nothing (R5).
    fn ignores_invalid_inputs(&self) -> Result<(), String> {
        let before = self.fingerprint();
        let mut out = Vec::new();
        let mut other = self.clone();
        for input in self.host.invalid_inputs() {
            let what = format!("{input:?}");
            other.machine.handle_input(now(), input, &mut out);
            if !out.is_empty() {
                return Err(format!("R5: {what} gave {out:?}"));
            }
        }
        if other.fingerprint() == before {
            Ok(())
        } else {
            Err("R5: a late word changed the machine".to_owned())
        }
    }

    /// Checks that a cancel, the end of the grace period and the commit result always end the loop.
    fn can_be_cancelled(&self) -> Result<(), String> {
        let mut other = self.clone();
        let inputs = [Input::Cancel, Input::GraceOver, Input::Committed];
        self.leads_to_finish(&mut other, inputs.into_iter(), "cancelled")
    }

    /// Checks that the loop ends if the host answers every effect.
    fn can_finish(&self) -> Result<(), String> {
        let mut other = self.clone();
        for _ in 0..20 {
            let Some(input) = other.host.cooperative_input() else {
                break;
            };
            other.feed(input)?;
        }
        self.leads_to_finish(&mut other, std::iter::empty(), "finished")
    }

    fn leads_to_finish(
        &self,
        other: &mut Self,
        inputs: impl Iterator<Item = Input>,
        how: &str,
    ) -> Result<(), String> {
        let mut out = Vec::new();
        for input in inputs {
            other.machine.handle_input(now(), input, &mut out);
        }
        if other.machine.is_over() {
            Ok(())
        } else {
            Err(format!("a loop can always be {how}: {:?}", self.host))
        }
    }
}

impl Loop {
    /// Writes everything that distinguishes states of the machine.
    fn write_state(&self, out: &mut impl fmt::Write) -> fmt::Result {
        let Self {
            emitter: mint,
            turn_count: turns,
            failed_attempts: attempts,
            is_after_result: after_result,
            usage,
            own_spending: own,
            other_spending: elsewhere,
            children_usage: children,
            gauge,
            input_queues: queues,
            halt,
            grace_started: grace,
            is_grace_over: killed,
            last_reply_limit: last_reply,
            stage,
            spec: _,
            time_base: _,
            permission_asked_at: _,
            seeded_fault: _,
        } = self;
        write!(
            out,
            "{mint:?}{turns}{attempts}{after_result}{usage:?}{children:?}"
        )?;
        write!(out, "{own:?}{elsewhere:?}")?;
        write!(out, "{gauge:?}{queues:?}{halt:?}{grace}{killed}")?;
        write!(out, "{last_reply:?}{stage:?}")
    }
}

fn now() -> Timestamp {
    Timestamp::default()
}

/// Explores all states depth-first. Fails with the first violation.
fn explore(scene: Scenario, fault: Option<SeededFault>) -> Result<Exploration, String> {
    let mut endings = BTreeSet::new();
    let mut seen = HashSet::new();
    let mut stack = vec![ExplorerState::start(scene, fault)?];
    while let Some(node) = stack.pop() {
        if !seen.insert(node.fingerprint()) {
            continue;
        }
        if node.host.is_over {
            endings.insert(node.host.ending.clone());
        }
        for input in node.host.possible_inputs() {
            let mut next = node.clone();
            next.feed(input)?;
            stack.push(next);
        }
        node.ignores_invalid_inputs()?;
        node.can_be_cancelled()?;
        node.can_finish()?;
    }
    let states = seen.len();
    Ok(Exploration { states, endings })
}

fn explore_and_check(scene: Scenario, at_least: usize) {
    let explored = explore(scene, None).unwrap();
    let endings: Vec<&str> = explored.endings.iter().map(String::as_str).collect();
    assert_eq!(endings, scene.expected_endings());
    let states = explored.states;
    println!("{scene:?}: {states} states");
    assert!(
        states > at_least,
        "the world is not hostile enough: {states}"
    );
}

/// Covers LOOP-49, TURN-67, ACP-22, ACP-32, ACP-51 to ACP-56, LASH-15, LASH-35, PERM-3, PERM-4, R1 to R5.
// proves: ACP-22, ACP-32, ACP-51, ACP-52, ACP-53, LASH-15, LASH-35, I2, R1, R2, R4, R5, D-16, C-11
// proves: UP-30
#[test]
fn every_interleaving_keeps_every_invariant() {
    explore_and_check(Scenario::Calls, 10_000);
}

// proves: UP-5, UP-6, C-7, C-26
#[test]
fn steering_interleavings_keep_invariants() {
    explore_and_check(Scenario::Steering, 1_000);
}

// proves: C-6, R3, LASH-12
#[test]
fn parallel_call_interleavings_keep_invariants() {
    explore_and_check(Scenario::ParallelCalls, 1_000);
}

// proves: TURN-58, C-28
#[test]
fn compaction_interleavings_keep_invariants() {
    explore_and_check(Scenario::FullContext, 100);
    explore_and_check(Scenario::StandaloneCompaction, 10);
}

// proves: UP-1, D-16
#[test]
fn oversized_response_interleavings_keep_invariants() {
    explore_and_check(Scenario::OversizedResponses, 100);
}

#[test]
fn every_seeded_bug_is_found() {
    use Scenario::{
        Calls, FullContext, OversizedResponses, ParallelCalls, StandaloneCompaction, Steering,
    };
    let bugs = [
        (SeededFault::AcceptLateUpdates, Calls, "R5"),
        (SeededFault::CancelReportsEndTurn, Calls, "ACP-52"),
        (
            SeededFault::CommitAfterLaneLost,
            Calls,
            "no Commit without the lane",
        ),
        (SeededFault::CommitTwice, Calls, "at most one Commit"),
        (
            SeededFault::DropChildUsage,
            ParallelCalls,
            "what is said is shown",
        ),
        (
            SeededFault::DropCutOffResponse,
            OversizedResponses,
            "UP-1: what came so far is kept",
        ),
        (SeededFault::DropResultOnDeny, Calls, "R2"),
        (SeededFault::EventAfterLoopEnd, Calls, "R5"),
        (SeededFault::ForgetAbort, Calls, "nothing runs in the end"),
        (SeededFault::ForgetOnError, FullContext, "C-28"),
        (SeededFault::ForgetOnError, StandaloneCompaction, "C-28"),
        (
            SeededFault::ForgetStopCompaction,
            FullContext,
            "summaries are dropped in the end",
        ),
        (
            SeededFault::ForgetCancelHook,
            ParallelCalls,
            "hooks are taken back in the end",
        ),
        (
            SeededFault::ForgetStopModel,
            Calls,
            "the model is stopped in the end",
        ),
        (SeededFault::ForgetUndelivered, Steering, "no word is lost"),
        (SeededFault::ForgetValue, ParallelCalls, "LASH-119"),
        (
            SeededFault::ForgetCancelGate,
            Calls,
            "asks are withdrawn in the end",
        ),
        (SeededFault::DeliverFollowUpsEarly, Steering, "UP-6"),
        (
            SeededFault::IgnoreResponseLimit,
            OversizedResponses,
            "UP-1: an answer beyond its bounds",
        ),
        (
            SeededFault::IgnoreGraceOver,
            Calls,
            "a loop can always be cancelled",
        ),
        (
            SeededFault::IgnoreOtherSpending,
            Steering,
            "UP-1: the model is called beyond the limits",
        ),
        (SeededFault::KeepIncompleteCalls, Calls, "D-16"),
        (SeededFault::LastControlWins, ParallelCalls, "UP-21"),
        (SeededFault::LastHaltWins, Calls, "R5"),
        (SeededFault::OmitCompactionEnd, FullContext, "R1"),
        (SeededFault::OmitEndOnAbort, Calls, "R2"),
        (SeededFault::PublishBeforeCommit, Calls, "R4"),
        (
            SeededFault::RunAfterCancel,
            Calls,
            "nothing starts once halted",
        ),
        (SeededFault::RunAllInParallel, ParallelCalls, "C-6"),
        (SeededFault::RunBeforeVerdict, Calls, "ACP-32"),
        (
            SeededFault::RunCallsOfOversizedResponse,
            OversizedResponses,
            "UP-1: an answer beyond its bounds",
        ),
        (SeededFault::RunWhenSteered, Steering, "UP-5"),
        (SeededFault::OmitStartOfSkippedCall, Calls, "R1"),
        (SeededFault::DeliverResultsOutOfOrder, ParallelCalls, "R2"),
        (SeededFault::ReportErrorOnCancel, FullContext, "C-28"),
        (SeededFault::ReportErrorTwice, FullContext, "C-28"),
        (SeededFault::UsageZeroForUnknown, Calls, "I2"),
    ];
    for (bug, scene, invariant) in bugs {
        match explore(scene, Some(bug)) {
            Ok(explored) => panic!("{bug:?} was not found in {} states", explored.states),
            Err(complaint) => {
                assert!(complaint.starts_with(invariant), "{bug:?}: {complaint}");
            }
        }
    }
}
