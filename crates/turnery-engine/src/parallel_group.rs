//! Parallel groups: selects the winner among loops that ran one prompt under several configurations, and
//! records it (LOOP-70 to LOOP-77).

use crate::{
    CommandJudgement, Event, EventKind, LoopId, LoopRecord, Outcome, SessionId, Timestamp, Usage,
    recorder::append_event,
};

/// Agent id used unless the host sets another.
pub const DEFAULT_AGENT_ID: &str = "turnery";

/// Builds the first event of each loop in a parallel group. Stored before any loop starts, so that a crash
/// leaves a trace of each (LOOP-50, LOOP-54).
#[must_use]
pub fn parallel_start_event(
    session_id: &SessionId,
    agent_id: &str,
    loop_id: &LoopId,
    group: &[LoopId],
    at: Timestamp,
) -> Event {
    Event {
        session_id: session_id.clone(),
        loop_id: loop_id.clone(),
        seq: 0,
        turn_index: None,
        at,
        kind: EventKind::ParallelStart {
            agent_id: agent_id.to_owned(),
            loop_ids: group.to_vec(),
        },
    }
}

/// Rule for selecting a winner without a judge (LOOP-75).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectionRule {
    /// First configuration.
    First,
    /// Loop that used the fewest tokens.
    FewestTokens,
    /// Loop that used the most tokens.
    MostTokens,
}

/// Returns the indices of the loops that can win: those that finished, else the first that was cancelled,
/// else the first. Empty only if there are no loops.
#[must_use]
pub fn eligible_candidates(records: &[LoopRecord]) -> Vec<usize> {
    let places = |wanted: fn(&Outcome) -> bool| {
        let outcomes = records.iter().map(|record| record.outcome.as_ref());
        outcomes
            .enumerate()
            .filter(move |(_, outcome)| outcome.is_some_and(wanted))
            .map(|(place, _)| place)
    };
    let finished: Vec<usize> = match faulty!(FailedCandidateIsEligible) {
        true => places(|_| true).collect(),
        false => places(Outcome::is_finished).collect(),
    };
    if !finished.is_empty() {
        return finished;
    }
    let cancelled = places(|it| *it == Outcome::Stopped(crate::TurnStop::Cancelled)).next();
    cancelled
        .filter(|_| !faulty!(CancelledCandidateIsSkipped))
        .or((!records.is_empty()).then_some(0))
        .into_iter()
        .collect()
}

/// Returns the index of the winner among the eligible loops; ties go to the earlier one. A loop with unknown
/// usage never wins by its usage.
#[must_use]
pub fn select_candidate(records: &[LoopRecord], eligible: &[usize], rule: SelectionRule) -> usize {
    let spent = |place: &usize| match records.get(*place).map(|it| it.usage.total()) {
        None | Some(0) if !faulty!(UnknownUsageWins) => None,
        None => None,
        Some(tokens) => Some(tokens),
    };
    let places = eligible.iter();
    let found = match rule {
        SelectionRule::First => eligible.first(),
        SelectionRule::FewestTokens => places.min_by_key(|it| spent(it).unwrap_or(u64::MAX)),
        // `max_by_key` returns the last maximum, so iterate in reverse.
        SelectionRule::MostTokens => places.rev().max_by_key(|it| spent(it).unwrap_or(0)),
    };
    found.copied().unwrap_or_default()
}

/// Parses the index of the winner from a judge's reply: the first number, counted from 1; `None` if it is not
/// in `1..=count` (UP-17).
#[must_use]
pub fn parse_judge_reply(reply: &str, count: usize) -> Option<usize> {
    let start = reply.find(|c: char| c.is_ascii_digit())?;
    let digits = &reply[start..];
    let end = digits.find(|c: char| !c.is_ascii_digit());
    let number: usize = digits[..end.unwrap_or(digits.len())].parse().ok()?;
    let number = number.checked_add(usize::from(faulty!(JudgeCountsFromZero)))?;
    number.checked_sub(1).filter(|place| *place < count)
}

/// Returns the index of the first eligible loop for which the judging command succeeded, or else of the first
/// eligible one.
#[must_use]
pub fn select_by_command(
    records: &[LoopRecord],
    eligible: &[usize],
    judged: &CommandJudgement,
) -> usize {
    let passed = |place: &&usize| {
        let record = records.get(**place);
        record.is_some_and(|it| judged.has_passed(&it.loop_id)) && !faulty!(IgnoreChecks)
    };
    let winner = eligible.iter().find(passed).or(eligible.first());
    winner.copied().unwrap_or_default()
}

/// Report on the judge of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JudgeReport {
    /// `provider/model`; `None` without a judge model.
    pub model: Option<String>,
    /// Command that judged, with its results.
    pub command: Option<CommandJudgement>,
    /// Usage of the judge's call; zero without a judge model (LOOP-76).
    pub usage: Usage,
    /// Notice for the user.
    pub issue: Option<String>,
}

/// Records the winner in all records of a group, as the last event of each.
pub fn record_winner(records: &mut [LoopRecord], winner: usize, report: &JudgeReport) {
    let Some(selected) = records.get(winner).map(|it| it.loop_id.clone()) else {
        return;
    };
    for record in records {
        if faulty!(RecordWinnerOnce) && record.loop_id != selected {
            continue;
        }
        if let (true, Some(issue)) = (record.loop_id == selected, &report.issue) {
            insert_issue(record, issue);
        }
        let Some(end) = record.events.last() else {
            continue;
        };
        let concluded = Event {
            seq: end.seq + 1,
            kind: EventKind::ParallelEnd {
                winner: selected.clone(),
                evaluation_usage: report.usage,
                judge: report.model.clone(),
                command: report.command.clone().map(Box::new),
            },
            ..end.clone()
        };
        append_event(record, &concluded);
    }
}

/// Inserts a notice before the end of the loop, both in the record's issues and in its events.
fn insert_issue(record: &mut LoopRecord, issue: &str) {
    record.issues.push(issue.to_owned());
    let Some(end) = record.events.last_mut() else {
        return;
    };
    let before = Event {
        kind: EventKind::Issue {
            text: issue.to_owned(),
        },
        ..end.clone()
    };
    end.seq += 1;
    let place = record.events.len() - 1;
    record.events.insert(place, before);
}
