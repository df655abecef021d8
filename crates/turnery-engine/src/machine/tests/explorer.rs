//! Explores every interleaving of inputs from a hostile host, and checks the invariants after each step.

mod candidates;
mod inputs;
mod invariants;
mod recovered;
mod scenario;
mod simulated_host;

use super::super::{Effect, Input, Loop};
use crate::{
    Event, Timestamp,
    oracle::ensure::ensure,
    seeded_fault::{SeededFault, with_seeded_fault},
};
use candidates::explore_candidates;
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
    /// Events that the host has journalled: all but streaming ones.
    journal: Vec<Event>,
    /// Length of the journal before the last input.
    journalled_before: usize,
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
    fn start(scenario: Scenario) -> Result<Self, String> {
        let mut out = Vec::new();
        let machine = Loop::start(scenario.spec(), now(), &mut out);
        let mut state = Self {
            machine,
            host: SimulatedHost::new(scenario),
            checker: InvariantChecker::new(),
            journal: Vec::new(),
            journalled_before: 0,
        };
        state.check_effects(out)?;
        Ok(state)
    }

    fn feed(&mut self, input: Input) -> Result<(), String> {
        self.host.observe_input(&input);
        self.checker.observe_input(&input);
        self.journalled_before = self.journal.len();
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
            | Input::NestedCalls { .. }
            | Input::ModelDelta(_)
            | Input::ModelSilent { .. }
                if silent =>
            {
                Err(format!("every report is shown: {input:?}"))
            }
            _ => Ok(()),
        }
    }

    fn check_effects(&mut self, effects: Vec<Effect>) -> Result<(), String> {
        for effect in effects {
            if let Effect::Emit(event) | Effect::Commit(event) = &effect
                && !event.kind.is_streaming()
            {
                self.journal.push(event.clone());
            }
            self.checker.check_effect(&mut self.host, effect)?;
        }
        ensure(self.machine.is_over() == self.host.is_over, || {
            "exactly one Finish: the machine is over without one".to_owned()
        })
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
            ensure(out.is_empty(), || format!("R5: {what} gave {out:?}"))?;
        }
        ensure(other.fingerprint() == before, || {
            "R5: a late input changed the machine".to_owned()
        })
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
        ensure(other.machine.is_over(), || {
            format!("a loop can always be {how}: {:?}", self.host)
        })
    }
}

impl Loop {
    /// Writes everything that distinguishes states of the machine.
    fn write_state(&self, out: &mut impl fmt::Write) -> fmt::Result {
        let Self {
            emitter,
            turn_count,
            failed_attempts,
            is_after_result,
            usage,
            own_spending,
            other_spending,
            children_usage,
            gauge,
            input_queues,
            halt,
            grace_started,
            is_grace_over,
            was_reminded,
            reminder_count,
            value_rejection,
            last_reply_limit,
            stage,
            spec: _,
            time_base: _,
            permission_asked_at: _,
        } = self;
        write!(
            out,
            "{emitter:?}{turn_count}{failed_attempts}{is_after_result}"
        )?;
        write!(
            out,
            "{usage:?}{own_spending:?}{other_spending:?}{children_usage:?}"
        )?;
        write!(
            out,
            "{gauge:?}{input_queues:?}{halt:?}{grace_started}{is_grace_over}"
        )?;
        write!(out, "{was_reminded}{reminder_count}{value_rejection:?}")?;
        write!(out, "{last_reply_limit:?}{stage:?}")
    }
}

fn now() -> Timestamp {
    Timestamp::default()
}

/// Explores all states depth-first. Fails with the first violation.
fn explore(scenario: Scenario) -> Result<Exploration, String> {
    let mut endings = BTreeSet::new();
    let states = for_each_state(scenario, |state| {
        if state.host.is_over {
            endings.insert(state.host.ending.clone());
        }
        state.ignores_invalid_inputs()?;
        state.can_be_cancelled()?;
        state.can_finish()?;
        state.can_be_resumed()
    })?;
    Ok(Exploration { states, endings })
}

/// Visits all states depth-first; returns their number. Fails with the first violation.
fn for_each_state(
    scenario: Scenario,
    mut visit: impl FnMut(&ExplorerState) -> Result<(), String>,
) -> Result<usize, String> {
    let mut seen = HashSet::new();
    let mut stack = vec![ExplorerState::start(scenario)?];
    while let Some(state) = stack.pop() {
        if !seen.insert(state.fingerprint()) {
            continue;
        }
        for input in state.host.possible_inputs() {
            let mut next = state.clone();
            next.feed(input)?;
            stack.push(next);
        }
        visit(&state)?;
    }
    Ok(seen.len())
}

fn explore_and_check(scenario: Scenario, at_least: usize) {
    let explored = explore(scenario).unwrap();
    let endings: Vec<&str> = explored.endings.iter().map(String::as_str).collect();
    assert_eq!(endings, scenario.expected_endings());
    let states = explored.states;
    println!("{scenario:?}: {states} states");
    assert!(
        states > at_least,
        "the host is not hostile enough: {states}"
    );
}

/// Covers LOOP-49, TURN-67, ACP-22, ACP-32, ACP-51 to ACP-56, LASH-15, LASH-35, PERM-3, PERM-4, R1 to R5.
// proves: TURN-60, ACP-22, ACP-32, ACP-51, ACP-52, ACP-53, LASH-15, LASH-35, I2, R1, R2, R4, R5, D-16, C-11
// proves: UP-30
#[test]
fn every_interleaving_keeps_every_invariant() {
    explore_and_check(Scenario::Calls, 10_000);
}

// proves: UP-5, UP-6, C-7, C-26, TURN-60
#[test]
fn steering_interleavings_keep_invariants() {
    explore_and_check(Scenario::Steering, 1_000);
}

// proves: C-6, R3, LASH-12, TURN-60
#[test]
fn parallel_call_interleavings_keep_invariants() {
    explore_and_check(Scenario::ParallelCalls, 1_000);
}

// proves: TURN-58, C-28, TURN-60
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

// proves: LASH-113, LASH-114
#[test]
fn required_finish_interleavings_keep_invariants() {
    explore_and_check(Scenario::FinishRequired, 1_000);
}

// proves: LASH-71
#[test]
fn nested_call_interleavings_keep_invariants() {
    explore_and_check(Scenario::NestedCalls, 1_000);
}

// proves: LOOP-70, LOOP-75, UP-17, S5
#[test]
fn candidate_interleavings_keep_invariants() {
    for place in [0, 1] {
        explore_and_check(Scenario::Candidate { place }, 100);
    }
    let pairs = explore_candidates().unwrap();
    println!("{pairs} pairs of candidates");
    assert!(pairs > 10_000, "too few candidates: {pairs}");
}

#[test]
fn every_seeded_bug_is_found() {
    use Scenario::{
        Calls, FinishRequired, FullContext, NestedCalls, OversizedResponses, ParallelCalls,
        StandaloneCompaction, Steering,
    };
    use SeededFault as Bug;
    let bugs = [
        (Bug::AcceptLateUpdates, Calls, "R5"),
        (Bug::AcceptProse, FinishRequired, "LASH-114"),
        (Bug::ForgetReminder, FinishRequired, "UP-33"),
        (Bug::CancelReportsEndTurn, Calls, "ACP-52"),
        (
            Bug::CommitAfterLaneLost,
            Calls,
            "no Commit without the lane",
        ),
        (Bug::CommitTwice, Calls, "at most one Commit"),
        (Bug::DropChildUsage, ParallelCalls, "every report is shown"),
        (
            Bug::DropCutOffResponse,
            OversizedResponses,
            "UP-1: what was shown is kept",
        ),
        (Bug::DropResultOnDeny, Calls, "R2"),
        (Bug::EventAfterLoopEnd, Calls, "R5"),
        (Bug::ForgetAbort, Calls, "nothing runs in the end"),
        (Bug::ForgetOnError, FullContext, "C-28"),
        (Bug::ForgetOnError, StandaloneCompaction, "C-28"),
        (
            Bug::ForgetStopCompaction,
            FullContext,
            "compactions are stopped in the end",
        ),
        (
            Bug::ForgetCancelHook,
            ParallelCalls,
            "hooks are cancelled in the end",
        ),
        (
            Bug::ForgetStopModel,
            Calls,
            "the model is stopped in the end",
        ),
        (Bug::ForgetUndelivered, Steering, "no message is lost"),
        (Bug::ForgetValue, ParallelCalls, "LASH-119"),
        (
            Bug::ForgetCancelGate,
            Calls,
            "permission requests are cancelled in the end",
        ),
        (Bug::DeliverFollowUpsEarly, Steering, "UP-6"),
        (
            Bug::IgnoreResponseLimit,
            OversizedResponses,
            "UP-1: an oversized response",
        ),
        (
            Bug::IgnoreGraceOver,
            Calls,
            "a loop can always be cancelled",
        ),
        (
            Bug::IgnoreOtherSpending,
            Steering,
            "UP-1: the model is called beyond the limits",
        ),
        (Bug::KeepIncompleteCalls, Calls, "D-16"),
        (Bug::LastControlWins, ParallelCalls, "UP-21"),
        (Bug::LastHaltWins, Calls, "R5"),
        (Bug::OmitCompactionEnd, FullContext, "R1"),
        (Bug::OmitEndOnAbort, Calls, "R2"),
        (Bug::PublishBeforeCommit, Calls, "R4"),
        (Bug::RunAfterCancel, Calls, "nothing starts once halted"),
        (Bug::RunAllInParallel, ParallelCalls, "C-6"),
        (Bug::RunBeforeVerdict, Calls, "ACP-32"),
        (
            Bug::RunCallsOfOversizedResponse,
            OversizedResponses,
            "UP-1: an oversized response",
        ),
        (Bug::RunWhenSteered, Steering, "UP-5"),
        (Bug::OmitStartOfSkippedCall, Calls, "R1"),
        (Bug::DeliverResultsOutOfOrder, ParallelCalls, "R2"),
        (Bug::ReportErrorOnCancel, FullContext, "C-28"),
        (Bug::ReportErrorTwice, FullContext, "C-28"),
        (Bug::UsageZeroForUnknown, Calls, "I2"),
        (Bug::DeliverNestedResultToModel, NestedCalls, "R2"),
        (
            Bug::ForgetAbortOfParent,
            NestedCalls,
            "a loop can always be cancelled",
        ),
        (Bug::ForgetNestedDecision, NestedCalls, "UP-21"),
        (
            Bug::ForgetResults,
            NestedCalls,
            "a loop can always be finished",
        ),
        (
            Bug::ForgetStopOfParent,
            NestedCalls,
            "every running call is told to stop",
        ),
        (Bug::KeepNestedCalls, NestedCalls, "R1"),
        (Bug::OmitEndOfWaitingNestedCall, NestedCalls, "R1"),
        (Bug::OmitParentId, NestedCalls, "ACP-22"),
        (Bug::RecoverParentsFirst, NestedCalls, "S5"),
        (Bug::RecoverResultTwice, ParallelCalls, "S5"),
        (Bug::RecoverWithoutDenial, ParallelCalls, "S5"),
        (Bug::RecoverWithoutEnd, ParallelCalls, "S5"),
        (Bug::RecoverWithoutExcluding, Steering, "S5"),
        (Bug::RecoverWithoutNotice, Calls, "S5"),
        (Bug::RecoverWithoutOpenCompaction, FullContext, "S5"),
        (Bug::RecoverWithoutOpenMessage, Calls, "S5"),
        (Bug::RecoverWithoutStart, Calls, "S5"),
        (Bug::RecoverWithoutTurnEnd, Calls, "S5"),
        (Bug::RecoverWithoutUsage, Calls, "S5"),
    ];
    for (bug, scenario, invariant) in bugs {
        let explored = with_seeded_fault(bug, || explore(scenario)).map(|it| it.states);
        assert_found(bug, explored, invariant);
    }
    let bugs_of_groups = [
        (Bug::CancelledCandidateIsSkipped, "LOOP-75"),
        (Bug::FailedCandidateIsEligible, "LOOP-75"),
        (Bug::IgnoreChecks, "LOOP-75"),
        (Bug::JudgeCountsFromZero, "UP-17"),
        (Bug::RecordWinnerOnce, "LOOP-73"),
        (Bug::RecoverAllCandidates, "S5: one candidate stays"),
        (Bug::RecoverWithoutWinner, "S5: one candidate stays"),
        (Bug::UnknownUsageWins, "LOOP-75"),
    ];
    for (bug, invariant) in bugs_of_groups {
        assert_found(bug, with_seeded_fault(bug, explore_candidates), invariant);
    }
}

fn assert_found(bug: SeededFault, explored: Result<usize, String>, invariant: &str) {
    match explored {
        Ok(states) => panic!("{bug:?} was not found in {states} states"),
        Err(complaint) => assert!(complaint.starts_with(invariant), "{bug:?}: {complaint}"),
    }
}
