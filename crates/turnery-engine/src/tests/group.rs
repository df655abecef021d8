//! Groups: several loops in one stream, and which of them wins.

use super::{fixture::prompt, play::run, script::Script};
use crate::{
    Event, EventKind, Group, Input, LoopId, LoopRecord, LoopStatus, Outcome, Recorder, SessionId,
    Timestamp, TurnFinish, TurnStop, Usage,
    group::{Judged, Preference, eligible, named, preferred, settle},
};
use proptest::prelude::*;

fn id(n: usize) -> LoopId {
    LoopId::from(format!("s.cfg.{n}"))
}

fn announced(count: usize) -> Group {
    let session = SessionId::from("s");
    Group::announced(
        &session,
        "agent",
        Timestamp::UNIX_EPOCH,
        (1..=count).map(id),
    )
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
        text: "done".to_owned(),
    })
}

fn stopped() -> Outcome {
    Outcome::Stopped(TurnStop::ProviderError)
}

// proves: LOOP-50, D-6
#[test]
fn a_loop_is_pending_from_its_announcement_to_its_start() {
    let mut group = announced(2);
    let status = |group: &Group| group.records().map(|it| it.status).collect::<Vec<_>>();
    assert_eq!(status(&group), [LoopStatus::Pending, LoopStatus::Pending]);
    let script = Script::start(prompt());
    group.fold(&of_loop(&script.shown, 2)[0]);
    assert_eq!(status(&group), [LoopStatus::Pending, LoopStatus::Running]);
    let ids: Vec<LoopId> = group.records().map(|it| it.loop_id.clone()).collect();
    assert_eq!(ids, [id(1), id(2)]);
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
    let mut records = [ended(1, finished(), 1), ended(2, finished(), 2)];
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
        let mut group = announced(streams.len());
        let whole: usize = streams.iter().map(Vec::len).sum();
        // Cut off somewhere: what has not begun by then is pending.
        for turn in turns.iter().cycle().take(if turns.is_empty() { 0 } else { cut.index(whole + 1) * 2 }) {
            let place = turn.index(streams.len());
            if let Some(event) = streams[place].get(taken[place]) {
                group.fold(event);
                taken[place] += 1;
            }
        }
        for ((record, stream), taken) in group.records().zip(&streams).zip(taken) {
            let mut alone = Recorder::new();
            stream[..taken].iter().for_each(|event| alone.fold(event));
            match alone.into_record() {
                Some(expected) => prop_assert_eq!(record, &expected),
                None => prop_assert_eq!(record.status, LoopStatus::Pending),
            }
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
    let mut script = Script::start(prompt());
    script.feed(super::script::prose("done"));
    script.feed(Input::Committed);
    let mut records = [script.recorder.into_record().unwrap()];
    let judged = Judged {
        issue: Some("no judge".to_owned()),
        ..Judged::default()
    };
    settle(&mut records, 0, &judged);
    let record = &records[0];
    assert_eq!(record.issues, ["no judge"]);
    assert_eq!(crate::oracle::check_stored(&record.events), Ok(()));
    let [.., before, end] = &record.events[..] else {
        panic!("{:?}", record.events);
    };
    assert!(matches!(&before.kind, EventKind::Issue { text } if text == "no judge"));
    assert!(matches!(end.kind, EventKind::LoopEnd { .. }));
    assert_eq!(end.seq, before.seq + 1);
    let mut again = Recorder::new();
    record.events.iter().for_each(|event| again.fold(event));
    let expected = LoopRecord {
        parallel_group: None,
        ..record.clone()
    };
    assert_eq!(again.into_record(), Some(expected));
}
