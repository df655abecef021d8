//! Checks the usage identities against all evidence of a session.

use crate::evidence::{
    Evidence, ReportFigures, Row, key, normalised_usage, reported_usages, rows, sum, sums,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
};
use turnery_engine::{
    ContinuationKind, EventKind, LoopRecord, LoopStatus, Message, SessionId, Usage,
};
use turnery_sdk::{ActivityEvent, usage::source};

type Verdict = Result<(), String>;
type UsageLaw = fn(&Evidence) -> Verdict;

const LAWS: [(&str, UsageLaw); 13] = [
    ("I1", total_equals_buckets),
    ("I2", turn_equals_response),
    ("I3", loop_equals_turns),
    ("I4", each_turn_reports_once),
    ("I5", prompt_equals_loops),
    ("I6", children_equal_last_sums),
    ("I7", total_equals_own_plus_children),
    ("I8", report_margins_match_total),
    ("I9", turn_rows_equal_all_loops),
    ("I10", judge_and_summary_are_separate),
    ("I11", report_equals_expected_usage),
    ("I12", accepted_traces_equal_report),
    ("I13", report_never_shrinks),
];

/// Returns the broken laws, each with the reason.
pub(crate) fn broken_laws(evidence: &Evidence) -> Vec<(&'static str, String)> {
    let judged = LAWS.iter().map(|(name, law)| (*name, law(evidence)));
    judged
        .filter_map(|(name, verdict)| Some((name, verdict.err()?)))
        .collect()
}

fn check_equal<T: PartialEq + Debug>(what: impl Debug, found: &T, expected: &T) -> Verdict {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what:?}: {found:?}, but expected {expected:?}")),
    }
}

fn total_equals_buckets(evidence: &Evidence) -> Verdict {
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
    let reports = reports.flat_map(|report| report.rows.iter().map(|row| row.usage));
    for usage in records.chain(calls).chain(reports) {
        let total = usage.input + usage.output + usage.cache_read + usage.cache_write;
        check_equal("total", &usage.total(), &total)?;
        check_equal("reasoning", &usage, &normalised_usage(usage))?;
    }
    Ok(())
}

fn turn_equals_response(evidence: &Evidence) -> Verdict {
    for record in evidence.records() {
        for turn in &record.turns {
            let id = &turn.turn_id;
            let answer = record.messages.iter().find_map(|it| match &it.message {
                Message::Assistant { usage, .. } if it.turn_id.as_ref() == Some(id) => Some(*usage),
                _ => None,
            });
            check_equal(id, &answer, &Some(turn.usage))?;
            let ends = record.events.iter().filter_map(|event| match &event.kind {
                EventKind::TurnEnd { usage, .. } if event.turn_index == Some(id.turn_index) => {
                    Some(*usage)
                }
                _ => None,
            });
            check_equal(id, &ends.collect::<Vec<_>>(), &vec![turn.usage])?;
        }
    }
    for (session, stored) in &evidence.sessions {
        let turns = stored.records.iter().flat_map(|record| &record.turns);
        let turns = sorted(turns.filter_map(|turn| turn.usage));
        let answers = sorted(evidence.responses_for(session, source::TURN));
        check_equal(session, &turns, &answers)?;
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

fn loop_equals_turns(evidence: &Evidence) -> Verdict {
    for record in evidence.records() {
        let turns = sum(record.turns.iter().filter_map(|turn| turn.usage));
        let id = &record.loop_id;
        check_equal(id, &record.usage, &turns)?;
        let last = reported_usages(record)
            .last()
            .map(|(.., cumulative)| *cumulative);
        check_equal(id, &last.unwrap_or_default(), &turns)?;
        let ends = record.events.iter().filter_map(|event| match &event.kind {
            EventKind::LoopEnd { usage, .. } => Some(*usage),
            _ => None,
        });
        check_equal(id, &ends.collect::<Vec<_>>(), &vec![turns])?;
    }
    Ok(())
}

fn each_turn_reports_once(evidence: &Evidence) -> Verdict {
    for record in evidence.records() {
        let mut so_far = Usage::default();
        let mut expected = Vec::new();
        for turn in &record.turns {
            so_far = sum([so_far, turn.usage.unwrap_or_default()]);
            expected.push((Some(turn.turn_id.turn_index), turn.usage, so_far));
        }
        check_equal(&record.loop_id, &reported_usages(record), &expected)?;
    }
    for record in evidence.root().records.iter().filter(|it| is_shown(it)) {
        let shown = evidence.shown.iter();
        let shown = shown.filter(|activity| activity.id.loop_id == record.loop_id);
        let shown = shown.filter_map(|activity| match &activity.event {
            ActivityEvent::Usage { usage, cumulative } => Some((*usage, *cumulative)),
            _ => None,
        });
        let stored = reported_usages(record).into_iter();
        let stored: Vec<_> = stored.map(|(_, usage, sum)| (usage, sum)).collect();
        check_equal(&record.loop_id, &shown.collect(), &stored)?;
    }
    Ok(())
}

/// A candidate that was not chosen is stored and not shown.
fn is_shown(record: &LoopRecord) -> bool {
    let group = record.parallel_group.as_ref();
    group.is_none_or(|group| group.is_selected)
}

fn prompt_equals_loops(evidence: &Evidence) -> Verdict {
    for prompted in &evidence.prompts {
        let reported: BTreeSet<_> = prompted.result.loop_ids().collect();
        let of_prompt = prompted.result.loops.first().map(|it| &it.prompt_id);
        let stored = evidence.root().records.iter();
        let stored: Vec<_> = stored
            .filter(|it| of_prompt == Some(&it.prompt_id))
            .collect();
        let ids: BTreeSet<_> = stored.iter().map(|record| &record.loop_id).collect();
        check_equal("loops", &reported, &ids)?;
        let turns = stored.iter().flat_map(|record| &record.turns);
        let turns = sum(turns.filter_map(|turn| turn.usage));
        check_equal(of_prompt, &prompted.result.usage, &turns)?;
    }
    Ok(())
}

/// Session, purpose and model.
type Child = (SessionId, String, String);

fn update_last_sums<'a>(
    record: &'a LoopRecord,
    sums: &mut BTreeMap<Child, Usage>,
) -> Vec<&'a Usage> {
    let mut reported = Vec::new();
    for event in &record.events {
        if let EventKind::ChildUsageReported { child, .. } = &event.kind {
            let (source, model) = (child.source.clone(), child.model.clone());
            let of = (child.session_id.clone(), source, model);
            sums.insert(of, child.cumulative);
            reported.push(&child.cumulative);
        }
    }
    reported
}

fn children_equal_last_sums(evidence: &Evidence) -> Verdict {
    for record in evidence.records() {
        let mut last = BTreeMap::new();
        let sums = update_last_sums(record, &mut last);
        let kept = record.children_usage.iter().map(|child| {
            let (source, model) = (child.source.clone(), child.model.clone());
            ((child.session_id.clone(), source, model), child.cumulative)
        });
        check_equal(&record.loop_id, &kept.collect(), &last)?;
        if record.session_id == evidence.root && is_shown(record) {
            let shown = evidence.shown.iter();
            let shown = shown.filter(|activity| activity.id.loop_id == record.loop_id);
            let shown = shown.filter_map(|activity| match &activity.event {
                ActivityEvent::ChildUsage { cumulative, .. } => Some(cumulative),
                _ => None,
            });
            check_equal(&record.loop_id, &shown.collect(), &sums)?;
        }
    }
    for prompted in &evidence.prompts {
        let expected = child_sums(evidence, &prompted.result.loop_ids().collect::<Vec<_>>());
        check_equal("children", &rows(&prompted.children), &expected)?;
    }
    Ok(())
}

/// Returns the last usage of the children of these loops, by purpose and model.
fn child_sums(evidence: &Evidence, loops: &[&turnery_engine::LoopId]) -> BTreeMap<Row, Usage> {
    let mut last = BTreeMap::new();
    for record in &evidence.root().records {
        if loops.contains(&&record.loop_id) {
            update_last_sums(record, &mut last);
        }
    }
    let last = last.into_iter();
    sums(last.map(|((_, source, model), usage)| ((source, model), usage)))
}

fn total_equals_own_plus_children(evidence: &Evidence) -> Verdict {
    for prompted in &evidence.prompts {
        let ids: Vec<_> = prompted.result.loop_ids().collect();
        let children = child_sums(evidence, &ids).into_values();
        let all = sum(children.chain([prompted.result.usage]));
        check_equal("total of a prompt", &prompted.total, &all)?;
    }
    Ok(())
}

fn report_margins_match_total(evidence: &Evidence) -> Verdict {
    let all = evidence.sessions.values().map(|stored| &stored.report);
    for report in all.chain(&evidence.reports) {
        let keys: BTreeSet<Row> = report.rows.iter().map(key).collect();
        check_equal("rows", &keys.len(), &report.rows.len())?;
        check_equal(
            "total",
            &report.total,
            &sum(report.rows.iter().map(|it| it.usage)),
        )?;
        let by_source = report.rows.iter().map(|it| (it.source.clone(), it.usage));
        check_equal("sources", &report.by_source, &sums(by_source))?;
        let by_model = report.rows.iter().map(|it| (it.model.clone(), it.usage));
        check_equal("models", &report.by_model, &sums(by_model))?;
        for margin in [&report.by_source, &report.by_model] {
            check_equal("margin", &sum(margin.values().copied()), &report.total)?;
        }
    }
    Ok(())
}

fn of(report: &ReportFigures, purpose: &str) -> Usage {
    report.by_source.get(purpose).copied().unwrap_or_default()
}

fn turn_rows_equal_all_loops(evidence: &Evidence) -> Verdict {
    for (session, stored) in &evidence.sessions {
        let loops = sum(stored.records.iter().map(|record| record.usage));
        let turns = of(&stored.report, source::TURN);
        check_equal(session, &turns, &loops)?;
        let answers = sum(evidence.responses_for(session, source::TURN));
        check_equal(session, &turns, &answers)?;
    }
    Ok(())
}

fn judge_and_summary_are_separate(evidence: &Evidence) -> Verdict {
    for (session, stored) in &evidence.sessions {
        let mut judged = BTreeMap::new();
        for group in stored
            .records
            .iter()
            .filter_map(|it| it.parallel_group.as_ref())
        {
            let found = (&group.judge, group.evaluation_usage);
            let first = judged.entry(&group.all_loop_ids).or_insert(found);
            check_equal("branches of one group", &found, first)?;
        }
        let judges = sum(judged.into_values().map(|(_, usage)| usage));
        let expected = sum(evidence.responses_for(session, source::EVALUATION));
        check_equal("judges", &judges, &expected)?;
        check_equal("judges", &of(&stored.report, source::EVALUATION), &expected)?;
        let summaries = stored.records.iter().filter_map(|it| it.compaction_usage);
        let expected = sum(evidence.responses_for(session, source::COMPACTION));
        check_equal("summaries", &sum(summaries), &expected)?;
    }
    Ok(())
}

fn report_equals_expected_usage(evidence: &Evidence) -> Verdict {
    for (session, stored) in &evidence.sessions {
        let mut found = rows(&stored.report.rows);
        // External children have no test model.
        let hired = found.remove(&(source::SUBAGENT.to_owned(), "toy/kid".to_owned()));
        if *session == evidence.root {
            check_equal("hired", &hired.unwrap_or_default(), &evidence.hired)?;
        }
        check_equal(session, &found, &evidence.expected_usage(session))?;
    }
    let last = evidence.reports.last().ok_or("there is no report")?;
    check_equal("report", &last.rows, &evidence.root().report.rows)
}

fn accepted_traces_equal_report(evidence: &Evidence) -> Verdict {
    let (accepted, others): (Vec<_>, Vec<_>) = evidence.calls.iter().partition(|it| it.accepted);
    check_equal("answers", &accepted.len(), &evidence.answered.len())?;
    check_equal("failed attempts", &others.len(), &evidence.failed)?;
    let paid = others.iter().filter_map(|call| call.usage);
    check_equal("failed attempts", &sum(paid), &Usage::default())?;
    let traced = sums(accepted.iter().map(|call| {
        let row = (call.session_id.clone(), call.source, call.model.clone());
        (row, call.usage.unwrap_or_default())
    }));
    let answers = sums(evidence.answered.iter().map(|it| {
        let row = (it.session_id.clone(), it.source, it.model.clone());
        (row, normalised_usage(it.usage.unwrap_or_default()))
    }));
    check_equal("rows", &traced, &answers)?;
    let all = accepted.iter().filter_map(|call| call.usage);
    let all = sum(all.chain([evidence.hired]));
    check_equal("ledger", &evidence.root().report.total, &all)?;
    let turns = accepted.iter().filter(|call| call.source == source::TURN);
    let by_loop = sums(turns.map(|it| (&it.loop_id, it.usage.unwrap_or_default())));
    let loops = sums(evidence.records().map(|it| (&it.loop_id, it.usage)));
    check_equal("loops", &loops, &by_loop)
}

fn report_never_shrinks(evidence: &Evidence) -> Verdict {
    for record in evidence.records() {
        let is_compaction = record.continuation_kind == ContinuationKind::Compaction;
        if record.status == LoopStatus::Rejected || is_compaction {
            let found = (record.usage, record.turns.len());
            check_equal(&record.loop_id, &found, &(Usage::default(), 0))?;
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
            check_equal((row, before, now), &is_less, &false)?;
        }
    }
    Ok(())
}
