//! Pairs every state of one candidate with every state of the other: which of them stays if the host ends then, and
//! which wins once both have ended.

use super::{
    for_each_state,
    recovered::is_recoverable,
    scenario::{CANDIDATES, Scenario},
};
use crate::{
    CandidateCheck, CommandJudgement, Event, EventKind, LoopId, LoopRecord, Outcome, TurnStop,
    oracle::{check_record, ensure::ensure},
    parallel_group::{
        JudgeReport, SelectionRule, eligible_candidates, parse_judge_reply, record_winner,
        select_by_command, select_candidate,
    },
    recover_interrupted_loops,
    tests::harness::fold_events,
};

type Journal = Vec<Event>;

/// Explores all pairs of states; returns their number. Fails with the first violation.
pub(super) fn explore_candidates() -> Result<usize, String> {
    let mut open: [Vec<Journal>; 2] = Default::default();
    let mut ended: [Vec<Journal>; 2] = Default::default();
    for place in [0, 1] {
        for_each_state(Scenario::Candidate { place }, |state| {
            let journals = match state.host.commit_pending {
                true => &mut ended[place],
                false => &mut open[place],
            };
            if !journals.contains(&state.journal) {
                journals.push(state.journal.clone());
            }
            Ok(())
        })?;
    }
    check_judge_replies()?;
    let mut pairs = 0;
    for first in open[0].iter().chain(&ended[0]) {
        for second in open[1].iter().chain(&ended[1]) {
            check_recovered_pair(&[first, second], None)?;
            pairs += 1;
        }
    }
    for first in &ended[0] {
        for second in &ended[1] {
            check_ended_pair(&[first, second])?;
        }
    }
    Ok(pairs)
}

/// Checks that exactly one of the interrupted candidates stays: the recorded winner, else the first that can.
fn check_recovered_pair(journals: &[&Journal; 2], winner: Option<usize>) -> Result<(), String> {
    let can_stay = |place: &usize| is_recoverable(journals[*place]);
    let expected = winner.filter(can_stay).or_else(|| (0..2).find(can_stay));
    let records = recover_interrupted_loops(journals);
    let staying: Vec<usize> = (0..records.len())
        .filter(|place| records[*place].on_chain)
        .collect();
    ensure(staying.iter().copied().eq(expected), || {
        format!("S5: one candidate stays: {staying:?}, not {expected:?}")
    })
}

/// Checks the choice of the winner among candidates that have ended, and its records.
fn check_ended_pair(journals: &[&Journal; 2]) -> Result<(), String> {
    let records = journals.map(|journal| fold_events(journal).into_record().unwrap());
    let outcomes = records.iter().map(|it| it.outcome.as_ref().unwrap());
    let outcomes: Vec<&Outcome> = outcomes.collect();
    let is_finished = |place: &usize| matches!(outcomes[*place], Outcome::Finished(..));
    let is_cancelled =
        |place: &usize| matches!(outcomes[*place], Outcome::Stopped(TurnStop::Cancelled));
    let mut expected: Vec<usize> = (0..2).filter(is_finished).collect();
    if expected.is_empty() {
        expected.push((0..2).find(is_cancelled).unwrap_or(0));
    }
    let eligible = eligible_candidates(&records);
    ensure(eligible == expected, || {
        format!("LOOP-75: {eligible:?} of {outcomes:?} can win")
    })?;

    // Each response costs 12 tokens, or an unknown number.
    let tokens = |place: usize| records[place].usage.input;
    let cheapest = match expected.len() {
        2 => usize::from(tokens(1) == 12 && tokens(0) == 0),
        _ => expected[0],
    };
    let fewest = select_candidate(&records, &eligible, SelectionRule::FewestTokens);
    ensure(fewest == cheapest, || {
        format!(
            "LOOP-75: {fewest} has the fewest of {:?}",
            [tokens(0), tokens(1)]
        )
    })?;
    let most = select_candidate(&records, &eligible, SelectionRule::MostTokens);
    ensure(most == cheapest, || {
        format!(
            "LOOP-75: {most} has the most of {:?}",
            [tokens(0), tokens(1)]
        )
    })?;
    let first = select_candidate(&records, &eligible, SelectionRule::First);
    ensure(first == expected[0], || {
        format!("LOOP-75: {first} is first")
    })?;

    for passes in [[false, false], [false, true], [true, false], [true, true]] {
        let judged = CommandJudgement {
            command: "make test".to_owned(),
            results: expected.iter().map(|it| check(*it, passes[*it])).collect(),
        };
        let passed = expected.iter().find(|place| passes[**place]);
        let best = *passed.unwrap_or(&expected[0]);
        let winner = select_by_command(&records, &eligible, &judged);
        ensure(winner == best, || {
            format!("LOOP-75: {winner} wins although {passes:?} passed")
        })?;
        let report = JudgeReport {
            command: Some(judged),
            ..JudgeReport::default()
        };
        check_recorded_winner(journals, &records, winner, &report)?;
    }
    Ok(())
}

/// Checks the choice of a judge among two candidates.
fn check_judge_replies() -> Result<(), String> {
    for (reply, expected) in [
        ("1", Some(0)),
        ("the answer 2.", Some(1)),
        ("3", None),
        ("0", None),
    ] {
        let chosen = parse_judge_reply(reply, 2);
        ensure(chosen == expected, || {
            format!("UP-17: {reply:?} means {chosen:?}")
        })?;
    }
    Ok(())
}

/// Checks that both records name the winner, that nothing else of them has changed, and that the winner stays if the
/// host ends before the commit.
fn check_recorded_winner(
    journals: &[&Journal; 2],
    before: &[LoopRecord],
    winner: usize,
    report: &JudgeReport,
) -> Result<(), String> {
    let mut records = before.to_vec();
    record_winner(&mut records, winner, report);
    for (place, record) in records.iter().enumerate() {
        check_record(record)?;
        let end = record.events.last().map(|event| &event.kind);
        let is_named = matches!(
            end,
            Some(EventKind::ParallelEnd { winner: named, .. }) if named.as_str() == CANDIDATES[winner]
        );
        ensure(is_named, || {
            format!("LOOP-73: candidate {place} ends with {end:?}")
        })?;
        ensure(record.messages == before[place].messages, || {
            format!("LOOP-73: {:?} has changed", record.messages)
        })?;
        // The end of the group may be journalled for any candidate.
        let mut with_end = journals[place].clone();
        with_end.extend(record.events.last().cloned());
        let mut together = *journals;
        together[place] = &with_end;
        check_recovered_pair(&together, Some(winner))?;
    }
    Ok(())
}

fn check(place: usize, passes: bool) -> CandidateCheck {
    CandidateCheck {
        loop_id: LoopId::from(CANDIDATES[place]),
        exit_code: Some(i32::from(!passes)),
        output: String::new(),
    }
}
