//! Tests of parallel groups and of selecting the winner.

use super::{
    fixtures::prompt_spec,
    harness::{LoopHarness, fold_events},
    random_run::any_run,
};
use crate::{
    CandidateCheck, CommandJudgement, Event, EventKind, Input, LoopId, LoopRecord, LoopSpec,
    LoopStatus, Outcome, ProviderFailure, Recorder, SessionId, Timestamp, TurnFinish, TurnStop,
    Usage,
    parallel_group::{
        JudgeReport, SelectionRule, eligible_candidates, parse_judge_reply, record_winner,
        select_by_command, select_candidate,
    },
};
use proptest::prelude::*;

fn id(n: usize) -> LoopId {
    LoopId::from(format!("s.cfg.{n}"))
}

/// Returns the `ParallelStart` event of loop `n` in a group of `count`.
fn announced_events(count: usize, n: usize) -> Event {
    Event {
        session_id: SessionId::from("s"),
        loop_id: id(n),
        seq: 0,
        turn_index: None,
        at: Timestamp::UNIX_EPOCH,
        kind: EventKind::ParallelStart {
            agent_id: "agent".to_owned(),
            loop_ids: (1..=count).map(id).collect(),
        },
    }
}

/// Runs a loop of a group of two to its end.
fn loop_of_two(n: usize) -> LoopHarness {
    let mut script = LoopHarness::start(LoopSpec {
        loop_id: id(n),
        parallel_group: vec![id(1), id(2)],
        ..prompt_spec()
    });
    script.feed(super::harness::text_answer("done"));
    script.feed(Input::Committed);
    script
}

/// Returns the events relabelled as those of another loop.
fn events_of_loop(events: &[Event], n: usize) -> Vec<Event> {
    let renamed = |event: &Event| Event {
        loop_id: id(n),
        ..event.clone()
    };
    events.iter().map(renamed).collect()
}

fn ended_record(n: usize, outcome: Outcome, tokens: u64) -> LoopRecord {
    let session = SessionId::from("s");
    LoopRecord {
        outcome: Some(outcome),
        usage: Usage {
            output: tokens,
            ..Usage::default()
        },
        ..LoopRecord::new_running(session, id(n), "agent".to_owned(), Timestamp::UNIX_EPOCH)
    }
}

fn finished() -> Outcome {
    Outcome::Finished(
        TurnFinish::AssistantMessage {
            text: "done".into(),
        },
        None,
    )
}

fn stopped() -> Outcome {
    Outcome::Stopped(TurnStop::ProviderError(ProviderFailure::Refused))
}

// proves: LOOP-50, LOOP-49, LOOP-54, D-6, LOOP-25, LOOP-26, LOOP-51
#[test]
fn loop_is_pending_until_loop_start() {
    let script = loop_of_two(2);
    let [announcement, start, ..] = &script.published_events[..] else {
        panic!("{:?}", script.published_events);
    };
    assert_eq!((announcement.seq, start.seq), (0, 1));
    let mut recorder = Recorder::new();
    recorder.fold(announcement);
    let pending = recorder.record().unwrap();
    assert_eq!(
        (pending.status, &pending.loop_id, pending.on_chain),
        (LoopStatus::Pending, &id(2), false)
    );
    assert_eq!(pending.ended_at, None);
    // Nothing else can happen to it before it begins.
    recorder.fold(&script.published_events[2]);
    assert_eq!(recorder.record().unwrap().events.len(), 1);
    let lost = recorder.clone().into_aborted().unwrap();
    assert_eq!((lost.status, lost.outcome), (LoopStatus::Aborted, None));
    let mut start = start.clone();
    start.at = Timestamp::from_timestamp(9, 0).unwrap();
    recorder.fold(&start);
    let running = recorder.record().unwrap();
    assert_eq!(
        (running.status, running.started_at),
        (LoopStatus::Running, start.at)
    );
}

/// The stream of each loop matches its group, and its record matches its stream.
// proves: TURN-5, R4, D-8, LOOP-73
#[test]
fn parallel_end_is_in_each_stream() {
    let mut records = [1, 2].map(|n| loop_of_two(n).recorder.into_record().unwrap());
    assert!(records.iter().all(|record| record.on_chain));
    record_winner(&mut records, 0, &JudgeReport::default());
    let chain: Vec<bool> = records.iter().map(|it| it.on_chain).collect();
    assert_eq!(chain, [true, false]);
    // A later loop may still continue from it.
    assert!(records[1].is_in_conversation());
    for record in records {
        assert_eq!(crate::oracle::check_stored(&record.events), Ok(()));
        let again = fold_events(&record.events);
        assert_eq!(again.into_record(), Some(record));
    }
}

/// Invalid streams of a group are rejected.
#[test]
fn oracle_rejects_broken_group() {
    let mut records = [1, 2].map(|n| loop_of_two(n).recorder.into_record().unwrap());
    record_winner(&mut records, 0, &JudgeReport::default());
    let whole = records[0].events.clone();
    let complaint = |events: &[Event]| crate::oracle::check_stored(events).unwrap_err();
    let mut twice = whole.clone();
    let mut end = twice.last().unwrap().clone();
    end.seq += 1;
    twice.push(end);
    assert!(complaint(&twice).starts_with("R4"), "{}", complaint(&twice));
    assert!(complaint(&whole[1..]).starts_with("LOOP-73"));
    let mut strange = whole.clone();
    strange[0].kind = announced_events(2, 1).kind;
    for event in &mut strange {
        event.loop_id = id(3);
    }
    assert!(complaint(&strange).starts_with("LOOP-72"));
    let mut early = whole.clone();
    early.remove(whole.len() - 2);
    assert!(complaint(&early).starts_with("R1"), "{}", complaint(&early));
}

/// The winner is replayed from its record without streaming events, so its numbers have gaps.
// proves: LOOP-80
#[test]
fn only_winner_stream_may_have_gaps() {
    let mut shown = loop_of_two(1).published_events;
    assert_eq!(crate::oracle::check_live(&shown), Ok(()));
    for event in &mut shown[3..] {
        event.seq += 2;
    }
    assert_eq!(crate::oracle::check_live(&shown), Ok(()));
    let alone = crate::oracle::check_live(&shown[1..]).unwrap_err();
    assert!(alone.starts_with("LOOP-80"), "{alone}");
    shown[4].seq = 0;
    let back = crate::oracle::check_live(&shown).unwrap_err();
    assert!(back.starts_with("LOOP-80"), "{back}");
}

// proves: LOOP-75, UP-17
#[test]
fn eligible_and_selected_candidates() {
    let records = [
        ended_record(1, stopped(), 1),
        ended_record(2, finished(), 7),
        ended_record(3, finished(), 0),
        ended_record(4, finished(), 9),
        ended_record(5, finished(), 9),
        ended_record(6, finished(), 7),
    ];
    let may = eligible_candidates(&records);
    assert_eq!(may, [1, 2, 3, 4, 5]);
    assert_eq!(select_candidate(&records, &may, SelectionRule::First), 1);
    assert_eq!(
        select_candidate(&records, &may, SelectionRule::FewestTokens),
        1
    );
    assert_eq!(
        select_candidate(&records, &may, SelectionRule::MostTokens),
        3
    );
    assert_eq!(
        select_candidate(&records, &[2], SelectionRule::FewestTokens),
        2
    );
    assert_eq!(eligible_candidates(&records[..1]), [0]);
    assert_eq!(eligible_candidates(&[]), [0_usize; 0]);
    let cancelled = Outcome::Stopped(TurnStop::Cancelled);
    let records = [ended_record(1, stopped(), 1), ended_record(2, cancelled, 1)];
    assert_eq!(eligible_candidates(&records), [1]);
}

// proves: UP-17
#[test]
fn judge_reply_is_first_number() {
    for (reply, place) in [
        ("2", Some(1)),
        ("Answer 3 is better than 1.", Some(2)),
        ("**1**", Some(0)),
        ("3rd", Some(2)),
        ("0", None),
        ("4", None),
        ("4, or else 2", None),
        ("-2", Some(1)),
        ("99999999999999999999999", None),
        ("the second", None),
        ("", None),
        ("ⅱ ٢", None),
    ] {
        assert_eq!(parse_judge_reply(reply, 3), place, "{reply}");
    }
}

fn judged<const N: usize>(results: [CandidateCheck; N]) -> CommandJudgement {
    CommandJudgement {
        command: "test".to_owned(),
        results: results.into(),
    }
}

fn check(n: usize, exit_code: Option<i32>) -> CandidateCheck {
    CandidateCheck {
        loop_id: id(n),
        exit_code,
        output: String::new(),
    }
}

// proves: LOOP-75
#[test]
fn first_candidate_that_passes_the_command_wins() {
    let records = [1, 2].map(|n| loop_of_two(n).recorder.into_record().unwrap());
    let winner = |codes: [Option<i32>; 2]| {
        let judged = judged([check(1, codes[0]), check(2, codes[1])]);
        select_by_command(&records, &[0, 1], &judged)
    };
    assert_eq!(winner([Some(0), Some(0)]), 0);
    assert_eq!(winner([Some(1), Some(0)]), 1);
    assert_eq!(winner([None, Some(0)]), 1);
    assert_eq!(winner([Some(2), Some(1)]), 0);
    assert_eq!(winner([Some(2), None]), 0);
    // A loop that cannot win does not, whatever was checked.
    let first_passed = judged([check(1, Some(0))]);
    assert_eq!(select_by_command(&records, &[1], &first_passed), 1);
    assert_eq!(select_by_command(&records, &[], &judged([])), 0);
}

// proves: LOOP-72, LOOP-73, LOOP-74, LOOP-76, LOOP-77
#[test]
fn records_agree_except_is_selected() {
    let mut records = [1, 2].map(|n| loop_of_two(n).recorder.into_record().unwrap());
    let spent = Usage {
        input: 3,
        ..Usage::default()
    };
    let checks = CommandJudgement {
        command: "make test".to_owned(),
        results: vec![check(2, Some(0))],
    };
    let judged = JudgeReport {
        model: Some("p/wise".to_owned()),
        command: Some(checks.clone()),
        usage: spent,
        issue: None,
    };
    record_winner(&mut records, 1, &judged);
    for (place, record) in records.iter().enumerate() {
        let group = record.parallel_group.as_ref().unwrap();
        assert_eq!(group.all_loop_ids, [id(1), id(2)]);
        assert_eq!(group.selected_loop_id, id(2));
        assert_eq!(group.selected_config_index, 1);
        assert_eq!(group.evaluation_usage, spent);
        assert_eq!(group.judge.as_deref(), Some("p/wise"));
        assert_eq!(group.command.as_deref(), Some(&checks));
        assert_eq!(group.is_selected, place == 1);
    }
}

proptest! {
    /// The records do not depend on how the events of the loops interleave.
    // proves: R1, UP-17, LOOP-50, LOOP-51
    #[test]
    fn interleaving_does_not_change_records(
        scripts in prop::collection::vec(any_run(), 1..4),
        turns in prop::collection::vec(any::<prop::sample::Index>(), 0..400),
        cut in any::<prop::sample::Index>(),
    ) {
        let streams: Vec<Vec<Event>> = scripts
            .iter()
            .zip(1..)
            .map(|(script, n)| events_of_loop(&script.published_events, n))
            .collect();
        let mut taken = vec![0; streams.len()];
        let count = streams.len();
        let mut group: Vec<Recorder> = vec![Recorder::new(); count];
        for (recorder, n) in group.iter_mut().zip(1..) {
            recorder.fold(&announced_events(count, n));
        }
        let whole: usize = streams.iter().map(Vec::len).sum();
        // Truncated at any point: loops that have not started by then are pending.
        for turn in turns.iter().cycle().take(if turns.is_empty() { 0 } else { cut.index(whole + 1) * 2 }) {
            let place = turn.index(streams.len());
            if let Some(event) = streams[place].get(taken[place]) {
                group.iter_mut().for_each(|it| it.fold(event));
                taken[place] += 1;
            }
        }
        for ((recorder, (stream, n)), taken) in group.into_iter().zip(streams.iter().zip(1..)).zip(taken) {
            let announced = announced_events(count, n);
            let alone = fold_events([&announced].into_iter().chain(&stream[..taken]));
            let record = recorder.into_record().unwrap();
            prop_assert_eq!(record.status == LoopStatus::Pending, taken == 0);
            prop_assert_eq!(Some(record), alone.into_record());
        }
    }

    /// Any reply of a judge parses, and names at most one of the candidates.
    #[test]
    fn any_judge_reply_parses(reply in any::<String>(), count in 0_usize..5) {
        prop_assert!(parse_judge_reply(&reply, count).is_none_or(|place| place < count));
    }
}

/// The judge's failure is recorded in the winner's record before its `LoopEnd`.
#[test]
fn judge_issue_precedes_loop_end() {
    let mut records = [loop_of_two(1).recorder.into_record().unwrap()];
    let judged = JudgeReport {
        issue: Some("no judge".to_owned()),
        ..JudgeReport::default()
    };
    record_winner(&mut records, 0, &judged);
    let record = &records[0];
    assert_eq!(record.issues, ["no judge"]);
    assert_eq!(crate::oracle::check_stored(&record.events), Ok(()));
    let [.., before, end, _] = &record.events[..] else {
        panic!("{:?}", record.events);
    };
    assert!(matches!(&before.kind, EventKind::Issue { text } if text == "no judge"));
    assert!(matches!(end.kind, EventKind::LoopEnd { .. }));
    assert_eq!(end.seq, before.seq + 1);
    let again = fold_events(&record.events);
    assert_eq!(again.into_record().as_ref(), Some(record));
}

/// One loop of an interrupted group stays: the winner, or else the first eligible one.
// proves: S5, LOOP-54
#[test]
fn one_loop_of_interrupted_group_stays() {
    let journals: Vec<Vec<Event>> = (1..=2).map(|n| loop_of_two(n).published_events).collect();
    let on_chain = |journals: &[Vec<Event>]| -> Vec<bool> {
        let records = crate::recover_interrupted_loops(journals);
        records.iter().map(|record| record.on_chain).collect()
    };
    assert_eq!(on_chain(&journals), [true, false]);
    let swapped: Vec<_> = journals.iter().rev().cloned().collect();
    assert_eq!(on_chain(&swapped), [false, true]);
    // The first was announced only.
    let begun = vec![journals[0][..1].to_vec(), journals[1].clone()];
    assert_eq!(on_chain(&begun), [false, true]);
    let mut judged = journals.clone();
    let end = judged[0].last().unwrap().clone();
    judged[0].push(Event {
        seq: end.seq + 1,
        kind: EventKind::ParallelEnd {
            winner: id(2),
            evaluation_usage: Usage::default(),
            judge: None,
            command: None,
        },
        ..end
    });
    let mut end = judged[0].last().unwrap().clone();
    end.loop_id = id(2);
    judged[1].push(end);
    assert_eq!(on_chain(&judged), [false, true]);
    // The winner is known from one journal only.
    judged[1].pop();
    assert_eq!(on_chain(&judged), [false, true]);
}
