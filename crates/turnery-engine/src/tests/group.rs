//! Groups: several loops in one stream, and which of them wins.

use super::{fixture::prompt, play::run, script::Script};
use crate::{
    Event, EventKind, Input, LoopId, LoopRecord, LoopSpec, LoopStatus, Outcome, Recorder,
    SessionId, Timestamp, TurnFinish, TurnStop, Usage,
    group::{Judged, Preference, eligible, named, preferred, settle},
};
use proptest::prelude::*;

fn id(n: usize) -> LoopId {
    LoopId::from(format!("s.cfg.{n}"))
}

/// What each of so many loops has been told before any begins.
fn announced(count: usize, n: usize) -> Event {
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

/// A loop of a group of two, to its end.
fn of_two(n: usize) -> Script {
    let mut script = Script::start(LoopSpec {
        loop_id: id(n),
        group: vec![id(1), id(2)],
        ..prompt()
    });
    script.feed(super::script::prose("done"));
    script.feed(Input::Committed);
    script
}

/// The same events, as those of another loop.
fn of_loop(events: &[Event], n: usize) -> Vec<Event> {
    let renamed = |event: &Event| Event {
        loop_id: id(n),
        ..event.clone()
    };
    events.iter().map(renamed).collect()
}

fn ended(n: usize, outcome: Outcome, tokens: u64) -> LoopRecord {
    let session = SessionId::from("s");
    LoopRecord {
        outcome: Some(outcome),
        usage: Usage {
            output: tokens,
            ..Usage::default()
        },
        ..LoopRecord::begun(session, id(n), "agent".to_owned(), Timestamp::UNIX_EPOCH)
    }
}

fn finished() -> Outcome {
    Outcome::Finished(TurnFinish::AssistantMessage {
        text: "done".into(),
    })
}

fn stopped() -> Outcome {
    Outcome::Stopped(TurnStop::ProviderError)
}

// proves: LOOP-50, LOOP-49, LOOP-54, D-6
#[test]
fn a_loop_is_pending_from_its_announcement_to_its_start() {
    let script = of_two(2);
    let [announcement, start, ..] = &script.shown[..] else {
        panic!("{:?}", script.shown);
    };
    assert_eq!((announcement.seq, start.seq), (0, 1));
    let mut recorder = Recorder::new();
    recorder.fold(announcement);
    let pending = recorder.record().unwrap();
    assert_eq!(
        (pending.status, &pending.loop_id, pending.on_chain),
        (LoopStatus::Pending, &id(2), false)
    );
    // Nothing else can happen to it before it begins.
    recorder.fold(&script.shown[2]);
    assert_eq!(recorder.record().unwrap().events.len(), 1);
    let lost = recorder.clone().aborted().unwrap();
    assert_eq!((lost.status, lost.outcome), (LoopStatus::Aborted, None));
    recorder.fold(start);
    assert_eq!(recorder.record().unwrap().status, LoopStatus::Running);
}

/// The stream of each loop is that of a group, and its record is what the stream says.
// proves: TURN-5, R4, D-8, LOOP-73
#[test]
fn the_end_of_the_group_is_in_each_stream() {
    let mut records = [1, 2].map(|n| of_two(n).recorder.into_record().unwrap());
    assert!(records.iter().all(|record| record.on_chain));
    settle(&mut records, 0, &Judged::default());
    let chain: Vec<bool> = records.iter().map(|it| it.on_chain).collect();
    assert_eq!(chain, [true, false]);
    // It can be gone on from all the same.
    assert!(records[1].stands());
    for record in records {
        assert_eq!(crate::oracle::check_stored(&record.events), Ok(()));
        let mut again = Recorder::new();
        record.events.iter().for_each(|event| again.fold(event));
        assert_eq!(again.into_record(), Some(record));
    }
}

/// What a stream of a group may not look like.
#[test]
fn the_oracle_knows_a_group_that_is_broken() {
    let mut records = [1, 2].map(|n| of_two(n).recorder.into_record().unwrap());
    settle(&mut records, 0, &Judged::default());
    let whole = records[0].events.clone();
    let complaint = |events: &[Event]| crate::oracle::check_stored(events).unwrap_err();
    let mut twice = whole.clone();
    let mut end = twice.last().unwrap().clone();
    end.seq += 1;
    twice.push(end);
    assert!(complaint(&twice).starts_with("R4"), "{}", complaint(&twice));
    assert!(complaint(&whole[1..]).starts_with("LOOP-73"));
    let mut strange = whole.clone();
    strange[0].kind = announced(2, 1).kind;
    for event in &mut strange {
        event.loop_id = id(3);
    }
    assert!(complaint(&strange).starts_with("LOOP-72"));
    let mut early = whole.clone();
    early.remove(whole.len() - 2);
    assert!(complaint(&early).starts_with("R1"), "{}", complaint(&early));
}

/// What streamed of a winner is not kept, so it is shown without: the numbers still rise.
// proves: LOOP-80
#[test]
fn a_winner_may_be_shown_with_gaps_and_nothing_else_may() {
    let mut shown = of_two(1).shown;
    assert_eq!(crate::oracle::check(&shown), Ok(()));
    for event in &mut shown[3..] {
        event.seq += 2;
    }
    assert_eq!(crate::oracle::check(&shown), Ok(()));
    let alone = crate::oracle::check(&shown[1..]).unwrap_err();
    assert!(alone.starts_with("LOOP-80"), "{alone}");
    shown[4].seq = 0;
    let back = crate::oracle::check(&shown).unwrap_err();
    assert!(back.starts_with("LOOP-80"), "{back}");
}

// proves: LOOP-75, UP-17
#[test]
fn who_may_win_and_who_does() {
    let records = [
        ended(1, stopped(), 1),
        ended(2, finished(), 7),
        ended(3, finished(), 0),
        ended(4, finished(), 9),
        ended(5, finished(), 9),
        ended(6, finished(), 7),
    ];
    let may = eligible(&records);
    assert_eq!(may, [1, 2, 3, 4, 5]);
    assert_eq!(preferred(&records, &may, Preference::First), 1);
    assert_eq!(preferred(&records, &may, Preference::FewestTokens), 1);
    assert_eq!(preferred(&records, &may, Preference::MostTokens), 3);
    assert_eq!(preferred(&records, &[2], Preference::FewestTokens), 2);
    assert_eq!(eligible(&records[..1]), [0]);
    assert_eq!(eligible(&[]), [0_usize; 0]);
    let cancelled = Outcome::Stopped(TurnStop::Cancelled);
    let records = [ended(1, stopped(), 1), ended(2, cancelled, 1)];
    assert_eq!(eligible(&records), [1]);
}

// proves: UP-17
#[test]
fn a_reply_names_the_first_number_in_it() {
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
        assert_eq!(named(reply, 3), place, "{reply}");
    }
}

// proves: LOOP-72, LOOP-73, LOOP-74, LOOP-76, LOOP-77
#[test]
fn every_record_says_the_same_but_for_who_won() {
    let mut records = [1, 2].map(|n| of_two(n).recorder.into_record().unwrap());
    let spent = Usage {
        input: 3,
        ..Usage::default()
    };
    let judged = Judged {
        model: Some("p/wise".to_owned()),
        usage: spent,
        issue: None,
    };
    settle(&mut records, 1, &judged);
    for (place, record) in records.iter().enumerate() {
        let group = record.parallel_group.as_ref().unwrap();
        assert_eq!(group.all_loop_ids, [id(1), id(2)]);
        assert_eq!(group.selected_loop_id, id(2));
        assert_eq!(group.selected_config_index, 1);
        assert_eq!(group.evaluation_usage, spent);
        assert_eq!(group.judge.as_deref(), Some("p/wise"));
        assert_eq!(group.is_selected, place == 1);
    }
}

proptest! {
    /// However the loops' events fall between each other, the records are those of each alone.
    // proves: R1, UP-17, LOOP-50
    #[test]
    fn interleaving_changes_nothing(
        scripts in prop::collection::vec(run(), 1..4),
        turns in prop::collection::vec(any::<prop::sample::Index>(), 0..400),
        cut in any::<prop::sample::Index>(),
    ) {
        let streams: Vec<Vec<Event>> = scripts
            .iter()
            .zip(1..)
            .map(|(script, n)| of_loop(&script.shown, n))
            .collect();
        let mut taken = vec![0; streams.len()];
        let count = streams.len();
        let mut group: Vec<Recorder> = vec![Recorder::new(); count];
        for (recorder, n) in group.iter_mut().zip(1..) {
            recorder.fold(&announced(count, n));
        }
        let whole: usize = streams.iter().map(Vec::len).sum();
        // Cut off somewhere: what has not begun by then is pending.
        for turn in turns.iter().cycle().take(if turns.is_empty() { 0 } else { cut.index(whole + 1) * 2 }) {
            let place = turn.index(streams.len());
            if let Some(event) = streams[place].get(taken[place]) {
                group.iter_mut().for_each(|it| it.fold(event));
                taken[place] += 1;
            }
        }
        for ((recorder, (stream, n)), taken) in group.into_iter().zip(streams.iter().zip(1..)).zip(taken) {
            let mut alone = Recorder::new();
            alone.fold(&announced(count, n));
            stream[..taken].iter().for_each(|event| alone.fold(event));
            let record = recorder.into_record().unwrap();
            prop_assert_eq!(record.status == LoopStatus::Pending, taken == 0);
            prop_assert_eq!(Some(record), alone.into_record());
        }
    }

    /// Whatever a judge says, nothing breaks, and only one of the answers can be named.
    #[test]
    fn any_reply_is_read(reply in any::<String>(), count in 0_usize..5) {
        prop_assert!(named(&reply, count).is_none_or(|place| place < count));
    }
}

/// The judge's failure stands in the winner's record as if it had been told while the loop ran.
#[test]
fn an_issue_of_the_choice_is_told_before_the_end() {
    let mut records = [of_two(1).recorder.into_record().unwrap()];
    let judged = Judged {
        issue: Some("no judge".to_owned()),
        ..Judged::default()
    };
    settle(&mut records, 0, &judged);
    let record = &records[0];
    assert_eq!(record.issues, ["no judge"]);
    assert_eq!(crate::oracle::check_stored(&record.events), Ok(()));
    let [.., before, end, _] = &record.events[..] else {
        panic!("{:?}", record.events);
    };
    assert!(matches!(&before.kind, EventKind::Issue { text } if text == "no judge"));
    assert!(matches!(end.kind, EventKind::LoopEnd { .. }));
    assert_eq!(end.seq, before.seq + 1);
    let mut again = Recorder::new();
    record.events.iter().for_each(|event| again.fold(event));
    assert_eq!(again.into_record().as_ref(), Some(record));
}

/// Of a group whose process ended before its commit one loop stays: the winner, or else the first that can.
// proves: S5, LOOP-54
#[test]
fn one_loop_of_an_interrupted_group_stays() {
    let journals: Vec<Vec<Event>> = (1..=2).map(|n| of_two(n).shown).collect();
    let on_chain = |journals: &[Vec<Event>]| -> Vec<bool> {
        let records = crate::interrupted_loops(journals);
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
