//! Group: one prompt under several configurations: which of its loops wins, and what all their records
//! say of it (LOOP-70 to LOOP-77).

use crate::{
    Event, EventKind, LoopId, LoopRecord, Outcome, SessionId, Timestamp, Usage, recorder::push,
};

/// Who runs the loops, unless a host says otherwise.
pub(crate) const AGENT: &str = "turnery";

/// What the stream of a loop begins with that is to be tried beside others. Kept before any of them
/// begins, so that a crash leaves a trace of each (LOOP-50, LOOP-54).
#[must_use]
pub fn announcement(
    session_id: &SessionId,
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
            agent_id: AGENT.to_owned(),
            loop_ids: group.to_vec(),
        },
    }
}

/// How the winner is found without asking anybody (LOOP-75).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// The first configuration.
    First,
    /// The one that spent the fewest tokens.
    FewestTokens,
    /// The one that spent the most.
    MostTokens,
}

/// The places of the loops that may win: those that came to an end of their own, or, if none did, one:
/// the first that was cancelled, else the first. Empty only when there are no loops.
#[must_use]
pub fn eligible(records: &[LoopRecord]) -> Vec<usize> {
    let places = |wanted: fn(&Outcome) -> bool| {
        let outcomes = records.iter().map(|record| record.outcome.as_ref());
        outcomes
            .enumerate()
            .filter(move |(_, outcome)| outcome.is_some_and(wanted))
            .map(|(place, _)| place)
    };
    let finished: Vec<usize> = places(|outcome| match outcome {
        Outcome::Finished(_) | Outcome::FrameSwitch { .. } => true,
        Outcome::Stopped(_) => false,
    })
    .collect();
    if !finished.is_empty() {
        return finished;
    }
    let cancelled = places(|it| *it == Outcome::Stopped(crate::TurnStop::Cancelled)).next();
    cancelled
        .or((!records.is_empty()).then_some(0))
        .into_iter()
        .collect()
}

/// The winner among those that may win; the earlier one of two that spent the same. Nobody wins by
/// a provider that does not say what was spent.
#[must_use]
pub fn preferred(records: &[LoopRecord], eligible: &[usize], by: Preference) -> usize {
    let spent = |place: &usize| match records.get(*place).map(|it| it.usage.total()) {
        None | Some(0) => None,
        Some(tokens) => Some(tokens),
    };
    let places = eligible.iter();
    let found = match by {
        Preference::First => eligible.first(),
        Preference::FewestTokens => places.min_by_key(|it| spent(it).unwrap_or(u64::MAX)),
        // The last of the greatest is taken.
        Preference::MostTokens => places.rev().max_by_key(|it| spent(it).unwrap_or(0)),
    };
    found.copied().unwrap_or_default()
}

/// The place that a judge's reply names: its first number, counted from 1; none if that is not one of
/// `count` (UP-17).
#[must_use]
pub fn named(reply: &str, count: usize) -> Option<usize> {
    let start = reply.find(|c: char| c.is_ascii_digit())?;
    let digits = &reply[start..];
    let end = digits.find(|c: char| !c.is_ascii_digit());
    let number: usize = digits[..end.unwrap_or(digits.len())].parse().ok()?;
    number.checked_sub(1).filter(|place| *place < count)
}

/// What the judge of a group was, and spent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// `provider/model`; none if nobody was asked.
    pub model: Option<String>,
    /// Of the call; zero without a judge (LOOP-76).
    pub usage: Usage,
    /// What a person should know of it.
    pub issue: Option<String>,
}

/// Write into the records of a group which one won: their streams end with that.
pub fn settle(records: &mut [LoopRecord], winner: usize, judged: &Judged) {
    let Some(selected) = records.get(winner).map(|it| it.loop_id.clone()) else {
        return;
    };
    for record in records {
        if let (true, Some(issue)) = (record.loop_id == selected, &judged.issue) {
            notice(record, issue);
        }
        let Some(end) = record.events.last() else {
            continue;
        };
        let concluded = Event {
            seq: end.seq + 1,
            kind: EventKind::ParallelEnd {
                winner: selected.clone(),
                evaluation_usage: judged.usage,
                judge: judged.model.clone(),
            },
            ..end.clone()
        };
        push(record, &concluded);
    }
}

/// The issue takes its place before the end of the loop, in the record as in its events.
fn notice(record: &mut LoopRecord, issue: &str) {
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
