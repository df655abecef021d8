//! Laws: the identities of usage, each held against all that a session's life has left behind.

use crate::evidence::{Evidence, Row, Told, key, rows, sum, sums, understood, usages};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
};
use turnery_agent::{TurnEvent, usage::source};
use turnery_engine::{
    ContinuationKind, EventKind, LoopRecord, LoopStatus, Message, SessionId, Usage,
};

type Verdict = Result<(), String>;
type Law = fn(&Evidence) -> Verdict;

const LAWS: [(&str, Law); 13] = [
    ("I1", a_total_is_its_buckets),
    ("I2", a_turn_is_its_answer),
    ("I3", a_loop_is_its_turns),
    ("I4", each_turn_tells_once),
    ("I5", a_prompt_is_its_loops),
    ("I6", children_are_their_last_sums),
    ("I7", all_is_own_and_children),
    ("I8", a_report_adds_up_both_ways),
    ("I9", turns_are_all_loops),
    ("I10", judges_and_summaries_are_beside_the_turns),
    ("I11", a_ledger_has_each_token_once),
    ("I12", what_was_accepted_is_the_ledger),
    ("I13", nothing_for_nothing_and_never_less),
];

/// The laws that the evidence breaks, each with what is wrong.
pub(crate) fn broken(evidence: &Evidence) -> Vec<(&'static str, String)> {
    let judged = LAWS.iter().map(|(name, law)| (*name, law(evidence)));
    judged
        .filter_map(|(name, verdict)| Some((name, verdict.err()?)))
        .collect()
}

fn same<T: PartialEq + Debug>(what: impl Debug, said: &T, expected: &T) -> Verdict {
    match said == expected {
        true => Ok(()),
        false => Err(format!("{what:?}: {said:?}, but expected {expected:?}")),
    }
}

fn a_total_is_its_buckets(evidence: &Evidence) -> Verdict {
    let of_record = |record: &LoopRecord| {
        let children = record.children_usage.iter().map(|child| child.cumulative);
        let turns = record.turns.iter().filter_map(|turn| turn.usage);
        let group = record.parallel_group.iter().map(|it| it.evaluation_usage);
        let own = [Some(record.usage), record.compaction_usage];
        let own = own.into_iter().flatten();
        children
            .chain(turns)
            .chain(group)
            .chain(own)
            .collect::<Vec<_>>()
    };
    let records = evidence.records().flat_map(of_record);
    let calls = evidence.calls.iter().filter_map(|call| call.usage);
    let reports = evidence.reports.iter();
    let reports = reports.flat_map(|told| told.rows.iter().map(|row| row.usage));
    for usage in records.chain(calls).chain(reports) {
        let total = usage.input + usage.output + usage.cache_read + usage.cache_write;
        same("total", &usage.total(), &total)?;
        same("reasoning", &usage, &understood(usage))?;
    }
    Ok(())
}

fn a_turn_is_its_answer(evidence: &Evidence) -> Verdict {
    for record in evidence.records() {
        for turn in &record.turns {
            let id = &turn.turn_id;
            let answer = record.messages.iter().find_map(|it| match &it.message {
                Message::Assistant { usage, .. } if it.turn_id.as_ref() == Some(id) => Some(*usage),
                _ => None,
            });
            same(id, &answer, &Some(turn.usage))?;
            let ends = record.events.iter().filter_map(|event| match &event.kind {
                EventKind::TurnEnd { usage, .. } if event.turn_index == Some(id.turn_index) => {
                    Some(*usage)
                }
                _ => None,
            });
            same(id, &ends.collect::<Vec<_>>(), &vec![turn.usage])?;
        }
    }
    for (session, stored) in &evidence.sessions {
        let turns = stored.records.iter().flat_map(|record| &record.turns);
        let turns = sorted(turns.filter_map(|turn| turn.usage));
        let answers = sorted(evidence.spent(session, source::TURN));
        same(session, &turns, &answers)?;
    }
    Ok(())
}

fn sorted(usages: impl Iterator<Item = Usage>) -> Vec<[u64; 5]> {
    let buckets = |it: Usage| {
        [
            it.input,
            it.output,
            it.reasoning,
            it.cache_read,
            it.cache_write,
        ]
    };
    let mut sorted: Vec<_> = usages.map(buckets).collect();
    sorted.sort_unstable();
    sorted
}

fn a_loop_is_its_turns(evidence: &Evidence) -> Verdict {
    for record in evidence.records() {
        let turns = sum(record.turns.iter().filter_map(|turn| turn.usage));
        let id = &record.loop_id;
        same(id, &record.usage, &turns)?;
        let last = usages(record).last().map(|(.., cumulative)| *cumulative);
        same(id, &last.unwrap_or_default(), &turns)?;
        let ends = record.events.iter().filter_map(|event| match &event.kind {
            EventKind::LoopEnd { usage, .. } => Some(*usage),
            _ => None,
        });
        same(id, &ends.collect::<Vec<_>>(), &vec![turns])?;
    }
    Ok(())
}

fn each_turn_tells_once(evidence: &Evidence) -> Verdict {
    for record in evidence.records() {
        let mut so_far = Usage::default();
        let mut expected = Vec::new();
        for turn in &record.turns {
            so_far = sum([so_far, turn.usage.unwrap_or_default()]);
            expected.push((Some(turn.turn_id.turn_index), turn.usage, so_far));
        }
        same(&record.loop_id, &usages(record), &expected)?;
    }
    for record in evidence.root().records.iter().filter(|it| is_shown(it)) {
        let shown = evidence.shown.iter();
        let shown = shown.filter(|activity| activity.id.loop_id == record.loop_id);
        let shown = shown.filter_map(|activity| match &activity.event {
            TurnEvent::Usage { usage, cumulative } => Some((*usage, *cumulative)),
            _ => None,
        });
        let stored = usages(record).into_iter();
        let stored: Vec<_> = stored.map(|(_, usage, sum)| (usage, sum)).collect();
        same(&record.loop_id, &shown.collect(), &stored)?;
    }
    Ok(())
}

/// A candidate that was not chosen is stored and not shown.
fn is_shown(record: &LoopRecord) -> bool {
    let group = record.parallel_group.as_ref();
    group.is_none_or(|group| group.is_selected)
}

fn a_prompt_is_its_loops(evidence: &Evidence) -> Verdict {
    for prompted in &evidence.prompts {
        let told: BTreeSet<_> = prompted.result.loop_ids().collect();
        let of_prompt = prompted.result.loops.first().map(|it| &it.prompt_id);
        let stored = evidence.root().records.iter();
        let stored: Vec<_> = stored
            .filter(|it| of_prompt == Some(&it.prompt_id))
            .collect();
        let ids: BTreeSet<_> = stored.iter().map(|record| &record.loop_id).collect();
        same("loops", &told, &ids)?;
        let turns = stored.iter().flat_map(|record| &record.turns);
        let turns = sum(turns.filter_map(|turn| turn.usage));
        same(of_prompt, &prompted.result.usage, &turns)?;
    }
    Ok(())
}

/// Session, purpose and model.
type Child = (SessionId, String, String);

fn last_sums<'a>(record: &'a LoopRecord, sums: &mut BTreeMap<Child, Usage>) -> Vec<&'a Usage> {
    let mut told = Vec::new();
    for event in &record.events {
        if let EventKind::ChildUsageReported { child, .. } = &event.kind {
            let (source, model) = (child.source.clone(), child.model.clone());
            let of = (child.session_id.clone(), source, model);
            sums.insert(of, child.cumulative);
            told.push(&child.cumulative);
        }
    }
    told
}

fn children_are_their_last_sums(evidence: &Evidence) -> Verdict {
    for record in evidence.records() {
        let mut last = BTreeMap::new();
        let told = last_sums(record, &mut last);
        let kept = record.children_usage.iter().map(|child| {
            let (source, model) = (child.source.clone(), child.model.clone());
            ((child.session_id.clone(), source, model), child.cumulative)
        });
        same(&record.loop_id, &kept.collect(), &last)?;
        if record.session_id == evidence.root && is_shown(record) {
            let shown = evidence.shown.iter();
            let shown = shown.filter(|activity| activity.id.loop_id == record.loop_id);
            let shown = shown.filter_map(|activity| match &activity.event {
                TurnEvent::ChildUsage { cumulative, .. } => Some(cumulative),
                _ => None,
            });
            same(&record.loop_id, &shown.collect(), &told)?;
        }
    }
    for prompted in &evidence.prompts {
        let expected = of_children(evidence, &prompted.result.loop_ids().collect::<Vec<_>>());
        same("children", &rows(&prompted.children), &expected)?;
    }
    Ok(())
}

/// What the children of these loops told last, by purpose and model.
fn of_children(evidence: &Evidence, loops: &[&turnery_engine::LoopId]) -> BTreeMap<Row, Usage> {
    let mut last = BTreeMap::new();
    for record in &evidence.root().records {
        if loops.contains(&&record.loop_id) {
            last_sums(record, &mut last);
        }
    }
    let last = last.into_iter();
    sums(last.map(|((_, source, model), usage)| ((source, model), usage)))
}

fn all_is_own_and_children(evidence: &Evidence) -> Verdict {
    for prompted in &evidence.prompts {
        let ids: Vec<_> = prompted.result.loop_ids().collect();
        let children = of_children(evidence, &ids).into_values();
        let all = sum(children.chain([prompted.result.usage]));
        same("total of a prompt", &prompted.total, &all)?;
    }
    Ok(())
}

fn a_report_adds_up_both_ways(evidence: &Evidence) -> Verdict {
    let all = evidence.sessions.values().map(|stored| &stored.report);
    for told in all.chain(&evidence.reports) {
        let keys: BTreeSet<Row> = told.rows.iter().map(key).collect();
        same("rows", &keys.len(), &told.rows.len())?;
        same(
            "total",
            &told.total,
            &sum(told.rows.iter().map(|it| it.usage)),
        )?;
        let by_source = told.rows.iter().map(|it| (it.source.clone(), it.usage));
        same("sources", &told.by_source, &sums(by_source))?;
        let by_model = told.rows.iter().map(|it| (it.model.clone(), it.usage));
        same("models", &told.by_model, &sums(by_model))?;
        for margin in [&told.by_source, &told.by_model] {
            same("margin", &sum(margin.values().copied()), &told.total)?;
        }
    }
    Ok(())
}

fn of(told: &Told, purpose: &str) -> Usage {
    told.by_source.get(purpose).copied().unwrap_or_default()
}

fn turns_are_all_loops(evidence: &Evidence) -> Verdict {
    for (session, stored) in &evidence.sessions {
        let loops = sum(stored.records.iter().map(|record| record.usage));
        let turns = of(&stored.report, source::TURN);
        same(session, &turns, &loops)?;
        let answers = sum(evidence.spent(session, source::TURN));
        same(session, &turns, &answers)?;
    }
    Ok(())
}

fn judges_and_summaries_are_beside_the_turns(evidence: &Evidence) -> Verdict {
    for (session, stored) in &evidence.sessions {
        let mut judged = BTreeMap::new();
        for group in stored
            .records
            .iter()
            .filter_map(|it| it.parallel_group.as_ref())
        {
            let said = (&group.judge, group.evaluation_usage);
            let first = judged.entry(&group.all_loop_ids).or_insert(said);
            same("branches of one group", &said, first)?;
        }
        let judges = sum(judged.into_values().map(|(_, usage)| usage));
        let expected = sum(evidence.spent(session, source::EVALUATION));
        same("judges", &judges, &expected)?;
        same("judges", &of(&stored.report, source::EVALUATION), &expected)?;
        let summaries = stored.records.iter().filter_map(|it| it.compaction_usage);
        let expected = sum(evidence.spent(session, source::COMPACTION));
        same("summaries", &sum(summaries), &expected)?;
    }
    Ok(())
}

fn a_ledger_has_each_token_once(evidence: &Evidence) -> Verdict {
    for (session, stored) in &evidence.sessions {
        let mut said = rows(&stored.report.rows);
        // Children that are not in the store answer to nobody's model.
        let hired = said.remove(&(source::SUBAGENT.to_owned(), "toy/kid".to_owned()));
        if *session == evidence.root {
            same("hired", &hired.unwrap_or_default(), &evidence.hired)?;
        }
        same(session, &said, &evidence.ledger(session))?;
    }
    let last = evidence.reports.last().ok_or("there is no report")?;
    same("report", &last.rows, &evidence.root().report.rows)
}

fn what_was_accepted_is_the_ledger(evidence: &Evidence) -> Verdict {
    let (accepted, others): (Vec<_>, Vec<_>) = evidence.calls.iter().partition(|it| it.accepted);
    same("answers", &accepted.len(), &evidence.answered.len())?;
    same("failed attempts", &others.len(), &evidence.failed)?;
    let paid = others.iter().filter_map(|call| call.usage);
    same("failed attempts", &sum(paid), &Usage::default())?;
    let told = sums(accepted.iter().map(|call| {
        let row = (call.session_id.clone(), call.source, call.model.clone());
        (row, call.usage.unwrap_or_default())
    }));
    let answers = sums(evidence.answered.iter().map(|it| {
        let row = (it.session_id.clone(), it.source, it.model.clone());
        (row, understood(it.usage.unwrap_or_default()))
    }));
    same("rows", &told, &answers)?;
    let all = accepted.iter().filter_map(|call| call.usage);
    let all = sum(all.chain([evidence.hired]));
    same("ledger", &evidence.root().report.total, &all)?;
    let turns = accepted.iter().filter(|call| call.source == source::TURN);
    let by_loop = sums(turns.map(|it| (&it.loop_id, it.usage.unwrap_or_default())));
    let loops = sums(evidence.records().map(|it| (&it.loop_id, it.usage)));
    same("loops", &loops, &by_loop)
}

fn nothing_for_nothing_and_never_less(evidence: &Evidence) -> Verdict {
    for record in evidence.records() {
        let is_compaction = record.continuation_kind == ContinuationKind::Compaction;
        if record.status == LoopStatus::Rejected || is_compaction {
            let said = (record.usage, record.turns.len());
            same(&record.loop_id, &said, &(Usage::default(), 0))?;
        }
    }
    for reports in evidence.reports.windows(2) {
        let after = rows(&reports[1].rows);
        for (row, before) in rows(&reports[0].rows) {
            let now = after.get(&row).copied().unwrap_or_default();
            let is_less = now.input < before.input
                || now.output < before.output
                || now.reasoning < before.reasoning
                || now.cache_read < before.cache_read
                || now.cache_write < before.cache_write;
            same((row, before, now), &is_less, &false)?;
        }
    }
    Ok(())
}
