//! Checks that each usage law fails when one figure of a full session is falsified.

use crate::{
    evidence::{Evidence, rows},
    session_runs::{RunAction, ScriptedCall, Step, happened, on_paused_clock, run_session},
    usage_laws::broken_laws,
};
use std::collections::BTreeMap;
use turnery_engine::{EventKind, LoopStatus, Usage};
use turnery_sdk::{ActivityEvent, SelectionStrategy};

/// Usage of each response.
const UNIT_USAGE: Usage = Usage {
    input: 1,
    output: 10,
    reasoning: 2,
    cache_read: 100,
    cache_write: 1000,
};

fn scaled_usage(n: u64) -> Usage {
    Usage {
        input: n,
        output: 10 * n,
        reasoning: 2 * n,
        cache_read: 100 * n,
        cache_write: 1000 * n,
    }
}

fn ends(with: u8) -> ScriptedCall {
    ScriptedCall {
        retries: 0,
        spends: Some(UNIT_USAGE),
        end: with,
    }
}

fn step(what: RunAction) -> Step {
    Step {
        what,
        uses_second_model: false,
        patience: 10_005,
        interjection: None,
    }
}

const SAY: u8 = 0;
const LOOK: u8 = 5;
const DELEGATE: u8 = 8;
const HIRE: u8 = 11;
const SWITCH: u8 = 12;
const FAIL: u8 = 13;
const HANG: u8 = 16;

/// Runs a session with everything that [`happened`] knows of.
fn full_session() -> Evidence {
    let retried = ScriptedCall {
        retries: 1,
        ..ends(HIRE)
    };
    // Long enough that the history is summarized before the next call.
    let long = ScriptedCall {
        spends: Some(Usage {
            cache_read: 11_000,
            ..UNIT_USAGE
        }),
        ..ends(LOOK)
    };
    let one = [
        // A prompt with a frame, and in it two children, of whom one has two of its own.
        vec![retried, ends(DELEGATE), ends(DELEGATE), ends(SAY)],
        vec![ends(SAY), ends(SAY), ends(SAY), ends(SWITCH), ends(SAY)],
        // A rerun, and a branch.
        vec![ends(SAY), ends(SAY)],
        // A prompt with a summary, and a summary alone.
        vec![long, ends(SAY), ends(SAY), ends(SAY)],
        // A candidate with two children; then the judge, who takes the other one.
        vec![ends(DELEGATE), ends(SAY), ends(SAY), ends(SAY), ends(SAY)],
        // A failure, and an interjection that came too late.
        vec![ends(FAIL), ends(SAY)],
        // A cancel in the second turn.
        vec![ends(LOOK), ends(HANG)],
    ];
    let two = [ends(SAY)];
    let steps = [
        step(RunAction::Say),
        step(RunAction::Refused),
        step(RunAction::Rerun(0)),
        step(RunAction::Branch(0)),
        step(RunAction::Say),
        step(RunAction::Compact),
        step(RunAction::Try(SelectionStrategy::Judge(None))),
        Step {
            interjection: Some(0),
            ..step(RunAction::Say)
        },
        step(RunAction::Say),
    ];
    on_paused_clock(run_session(&one.concat(), &two, &steps))
}

// proves: LASH-102, LASH-105, LASH-112, I3, I9, I10, I11
#[test]
fn full_session_report_matches_costs() {
    let life = full_session();
    let happened = happened(&life);
    assert_eq!(happened.len(), 16, "{happened:?}");
    assert_eq!(broken_laws(&life), []);
    let kid = Usage {
        input: 7,
        output: 70,
        reasoning: 7,
        cache_read: 700,
        cache_write: 7000,
    };
    // Turns of the prompts in order, including the candidate's two and the late interjection.
    let mut turns = scaled_usage(4 + 1 + 1 + 2 + 2 + 1 + 1);
    turns.cache_read += 10_900;
    let expected = [
        ("compaction", "toy/one", scaled_usage(2)),
        ("evaluation", "toy/one", scaled_usage(1)),
        ("subagent", "toy/kid", kid),
        ("subagent", "toy/one", scaled_usage(5 + 2)),
        ("turn", "toy/one", turns),
        ("turn", "toy/two", scaled_usage(1)),
    ];
    let expected: BTreeMap<_, _> = expected
        .into_iter()
        .map(|(source, model, usage)| ((source.to_owned(), model.to_owned()), usage))
        .collect();
    assert_eq!(rows(&life.root().report.rows), expected);
}

/// Law, description of the falsification, and the falsification.
type LawMutation = (&'static str, &'static str, fn(&mut Evidence));

const LAW_MUTATIONS: [LawMutation; 21] = [
    ("I1", "more reasoning than output", |life| {
        let usage = &mut life.root_mut().records[0].usage;
        usage.reasoning = usage.output + 1;
    }),
    ("I2", "a turn that is not its answer", |life| {
        let turn = &mut life.root_mut().records[0].turns[0];
        turn.usage.as_mut().unwrap().input += 1;
    }),
    ("I2", "an answer that no turn has", |life| {
        let mut answer = life.answered[0].clone();
        answer.session_id = life.root.clone();
        life.answered.push(answer);
    }),
    ("I3", "a loop that is more than its turns", |life| {
        life.root_mut().records[0].usage.input += 1;
    }),
    ("I3", "an end with another sum", |life| {
        for event in &mut life.root_mut().records[0].events {
            if let EventKind::LoopEnd { usage, .. } = &mut event.kind {
                usage.output += 1;
            }
        }
    }),
    ("I4", "a turn that tells nothing", |life| {
        let place = life
            .shown
            .iter()
            .position(|activity| is_usage(&activity.event));
        life.shown.remove(place.unwrap());
    }),
    ("I4", "a sum so far that is none", |life| {
        for event in &mut life.root_mut().records[0].events {
            if let EventKind::UsageReported { cumulative, .. } = &mut event.kind {
                *cumulative = UNIT_USAGE;
            }
        }
    }),
    ("I5", "a prompt that forgets a loop", |life| {
        life.prompts[0].result.loops.pop();
    }),
    ("I5", "a prompt that counts a turn twice", |life| {
        life.prompts[0].result.usage.input += 1;
    }),
    ("I6", "children by half their sums", |life| {
        let half = life.prompts[0].children[0].usage.output / 2;
        life.prompts[0].children[0].usage.output = half;
    }),
    ("I6", "a record without its children", |life| {
        life.root_mut().records[0].children_usage.clear();
    }),
    ("I7", "a total without the children", |life| {
        life.prompts[0].total = life.prompts[0].result.usage;
    }),
    ("I8", "a margin that is more than the total", |life| {
        let report = life.reports.last_mut().unwrap();
        report.by_model.values_mut().next().unwrap().input += 1;
    }),
    ("I9", "a ledger without the branch not chosen", |life| {
        let records = &mut life.root_mut().records;
        let groups = records.iter().map(|record| &record.parallel_group);
        let mut chosen = groups.map(|group| group.as_ref().map(|group| group.is_selected));
        let loser = chosen.position(|is_chosen| is_chosen == Some(false));
        records.remove(loser.unwrap());
    }),
    ("I10", "a judge on one branch alone", |life| {
        let mut records = life.root_mut().records.iter_mut();
        let group = records.find_map(|record| record.parallel_group.as_mut());
        group.unwrap().evaluation_usage = Usage::default();
    }),
    ("I10", "a summary that nobody paid for", |life| {
        for record in &mut life.root_mut().records {
            record.compaction_usage = None;
        }
    }),
    ("I11", "a child counted by its own report again", |life| {
        let mut children = life.sessions.values();
        let child = children.find(|stored| stored.spawned_by.is_some()).unwrap();
        let again = child.report.rows.clone();
        life.root_mut().report.rows.extend(again);
    }),
    ("I12", "a call that was not traced", |life| {
        let place = life.calls.iter().position(|call| call.accepted);
        life.calls.remove(place.unwrap());
    }),
    ("I12", "a failed attempt that was paid for", |life| {
        let mut calls = life.calls.iter_mut();
        calls.find(|call| !call.accepted).unwrap().usage = Some(UNIT_USAGE);
    }),
    ("I13", "a ledger that shrinks", |life| {
        life.reports.reverse();
    }),
    ("I13", "a refused loop that was paid for", |life| {
        let mut records = life.root_mut().records.iter_mut();
        let refused = records.find(|record| record.status == LoopStatus::Rejected);
        refused.unwrap().usage = UNIT_USAGE;
    }),
];

fn is_usage(event: &ActivityEvent) -> bool {
    matches!(event, ActivityEvent::Usage { .. })
}

/// Every law can be broken.
// proves: I1, I2, I3, I4, I5, I6, I7, I8, I9, I10, I11, I12, I13
#[test]
fn every_mutation_breaks_its_law() {
    let life = full_session();
    for (law, wrong, falsify) in LAW_MUTATIONS {
        let mut false_life = life.clone();
        falsify(&mut false_life);
        let found: Vec<_> = broken_laws(&false_life)
            .into_iter()
            .map(|(law, _)| law)
            .collect();
        assert!(found.contains(&law), "{law}, {wrong}: {found:?}");
    }
}
