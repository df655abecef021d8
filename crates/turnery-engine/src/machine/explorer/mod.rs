//! Explorer: tries every interleaving of a hostile world against the loop, and judges each step.

mod judge;
mod moves;
mod scene;
mod world;

use super::{Effect, Input, Loop, fault::Fault};
use crate::Timestamp;
use judge::Judge;
use scene::Scene;
use std::{
    collections::{BTreeSet, HashSet},
    fmt::{self, Write as _},
    hash::{DefaultHasher, Hasher as _},
};
use world::World;

#[derive(Clone)]
struct Node {
    machine: Loop,
    world: World,
    judge: Judge,
}

struct Explored {
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

impl Node {
    fn start(scene: Scene, fault: Option<Fault>) -> Result<Self, String> {
        let mut out = Vec::new();
        let mut machine = Loop::start(scene.spec(), now(), &mut out);
        machine.fault = fault;
        let mut node = Self {
            machine,
            world: World::new(scene),
            judge: Judge::new(),
        };
        node.judge(out)?;
        Ok(node)
    }

    fn on(&mut self, input: Input) -> Result<(), String> {
        self.world.say(&input);
        self.judge.hear(&input);
        let mut out = Vec::new();
        self.machine.on(now(), input.clone(), &mut out);
        let silent = out.is_empty();
        self.judge(out)?;
        match input {
            Input::Shows { .. }
            | Input::Printed { .. }
            | Input::Progressed { .. }
            | Input::Planned { .. }
            | Input::ChildSpent { .. }
            | Input::Delta(_)
            | Input::Silent { .. }
                if silent =>
            {
                Err(format!("what is said is shown: {input:?}"))
            }
            _ => Ok(()),
        }
    }

    fn judge(&mut self, effects: Vec<Effect>) -> Result<(), String> {
        for effect in effects {
            self.judge.see(&mut self.world, effect)?;
        }
        if self.machine.is_over() == self.world.over {
            Ok(())
        } else {
            Err("exactly one Finish: the machine is over without one".to_owned())
        }
    }

    fn fingerprint(&self) -> u64 {
        let mut fingerprint = Fingerprint(DefaultHasher::new());
        self.machine.mark(&mut fingerprint).unwrap();
        write!(fingerprint, "{:?}{:?}", self.world, self.judge).unwrap();
        fingerprint.0.finish()
    }

    /// R5: a word that does not fit changes nothing.
    fn ignores_misfits(&self) -> Result<(), String> {
        let before = self.fingerprint();
        let mut out = Vec::new();
        let mut other = self.clone();
        for input in self.world.misfits() {
            let what = format!("{input:?}");
            other.machine.on(now(), input, &mut out);
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

    /// No deadlock: a cancel, the end of the grace and the store's answer are always enough.
    fn can_be_cancelled(&self) -> Result<(), String> {
        let mut other = self.clone();
        let inputs = [Input::Cancel, Input::GraceOver, Input::Committed];
        self.leads_to_finish(&mut other, inputs.into_iter(), "cancelled")
    }

    /// No deadlock: when everything is answered, the loop comes to its end.
    fn can_finish(&self) -> Result<(), String> {
        let mut other = self.clone();
        for _ in 0..20 {
            let Some(input) = other.world.kindest() else {
                break;
            };
            other.on(input)?;
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
            other.machine.on(now(), input, &mut out);
        }
        if other.machine.is_over() {
            Ok(())
        } else {
            Err(format!("a loop can always be {how}: {:?}", self.world))
        }
    }
}

impl Loop {
    /// All that tells one state of the machine from another.
    fn mark(&self, out: &mut impl fmt::Write) -> fmt::Result {
        let Self {
            mint,
            turns,
            attempts,
            after_result,
            usage,
            own,
            elsewhere,
            children,
            gauge,
            queues,
            halt,
            grace,
            killed,
            last_reply,
            stage,
            spec: _,
            counts_from: _,
            asked_at: _,
            fault: _,
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

/// Depth first over all states. Returns what there is, or the first complaint.
fn explore(scene: Scene, fault: Option<Fault>) -> Result<Explored, String> {
    let mut endings = BTreeSet::new();
    let mut seen = HashSet::new();
    let mut stack = vec![Node::start(scene, fault)?];
    while let Some(node) = stack.pop() {
        if !seen.insert(node.fingerprint()) {
            continue;
        }
        if node.world.over {
            endings.insert(node.world.ending.clone());
        }
        for input in node.world.moves() {
            let mut next = node.clone();
            next.on(input)?;
            stack.push(next);
        }
        node.ignores_misfits()?;
        node.can_be_cancelled()?;
        node.can_finish()?;
    }
    let states = seen.len();
    Ok(Explored { states, endings })
}

fn try_all(scene: Scene, at_least: usize) {
    let explored = explore(scene, None).unwrap();
    let endings: Vec<&str> = explored.endings.iter().map(String::as_str).collect();
    assert_eq!(endings, scene.endings());
    let states = explored.states;
    println!("{scene:?}: {states} states");
    assert!(
        states > at_least,
        "the world is not hostile enough: {states}"
    );
}

/// LOOP-49, TURN-67, ACP-22, ACP-32, ACP-51 to 56, LASH-15, LASH-35, PERM-3, PERM-4, R1 to R5.
// proves: ACP-22, ACP-32, ACP-51, ACP-52, ACP-53, LASH-15, LASH-35, I2, R1, R2, R4, R5, D-16, C-11
// proves: UP-30
#[test]
fn every_interleaving_keeps_every_invariant() {
    try_all(Scene::Calls, 10_000);
}

// proves: UP-5, UP-6, C-7, C-26
#[test]
fn every_interleaving_of_people_keeps_every_invariant() {
    try_all(Scene::People, 1_000);
}

// proves: C-6, R3, LASH-12
#[test]
fn every_interleaving_of_calls_beside_each_other_keeps_every_invariant() {
    try_all(Scene::Beside, 1_000);
}

// proves: TURN-58, C-28
#[test]
fn every_interleaving_of_compactions_keeps_every_invariant() {
    try_all(Scene::Room, 100);
    try_all(Scene::Pass, 10);
}

// proves: UP-1, D-16
#[test]
fn every_interleaving_of_long_answers_keeps_every_invariant() {
    try_all(Scene::Long, 100);
}

#[test]
fn every_seeded_bug_is_found() {
    use Scene::{Beside, Calls, Long, Pass, People, Room};
    let bugs = [
        (Fault::AcceptLateWords, Calls, "R5"),
        (Fault::CancelReportsEndTurn, Calls, "ACP-52"),
        (
            Fault::CommitAfterLaneLost,
            Calls,
            "no Commit without the lane",
        ),
        (Fault::CommitTwice, Calls, "at most one Commit"),
        (Fault::DropChildUsage, Beside, "what is said is shown"),
        (Fault::DropCutAnswer, Long, "UP-1: what came so far is kept"),
        (Fault::DropResultOnDeny, Calls, "R2"),
        (Fault::EventAfterLoopEnd, Calls, "R5"),
        (Fault::ForgetAbort, Calls, "nothing runs in the end"),
        (Fault::ForgetOnError, Room, "C-28"),
        (Fault::ForgetOnError, Pass, "C-28"),
        (
            Fault::ForgetStopCompaction,
            Room,
            "summaries are dropped in the end",
        ),
        (
            Fault::ForgetStopHook,
            Beside,
            "hooks are taken back in the end",
        ),
        (
            Fault::ForgetStopModel,
            Calls,
            "the model is stopped in the end",
        ),
        (Fault::ForgetUnheard, People, "no word is lost"),
        (Fault::ForgetValue, Beside, "LASH-119"),
        (
            Fault::ForgetWithdraw,
            Calls,
            "asks are withdrawn in the end",
        ),
        (Fault::HearFollowUpsEarly, People, "UP-6"),
        (
            Fault::IgnoreAnswerLimit,
            Long,
            "UP-1: an answer beyond its bounds",
        ),
        (
            Fault::IgnoreGraceOver,
            Calls,
            "a loop can always be cancelled",
        ),
        (
            Fault::IgnoreOtherSpending,
            People,
            "UP-1: the model is called beyond the limits",
        ),
        (Fault::KeepBrokenCalls, Calls, "D-16"),
        (Fault::LastControlWins, Beside, "UP-21"),
        (Fault::LastHaltWins, Calls, "R5"),
        (Fault::NoEndOfCompaction, Room, "R1"),
        (Fault::NoEndOnAbort, Calls, "R2"),
        (Fault::PublishBeforeCommit, Calls, "R4"),
        (Fault::RunAfterCancel, Calls, "nothing starts once halted"),
        (Fault::RunAllBeside, Beside, "C-6"),
        (Fault::RunBeforeVerdict, Calls, "ACP-32"),
        (
            Fault::RunCutCalls,
            Long,
            "UP-1: an answer beyond its bounds",
        ),
        (Fault::RunWhenSteered, People, "UP-5"),
        (Fault::SkipWithoutBracket, Calls, "R1"),
        (Fault::TellAsTheyEnd, Beside, "R2"),
        (Fault::TellErrorOfCancel, Room, "C-28"),
        (Fault::TellErrorTwice, Room, "C-28"),
        (Fault::UsageZeroForUnknown, Calls, "I2"),
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
