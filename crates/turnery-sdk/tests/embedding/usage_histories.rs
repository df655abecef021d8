//! Property tests of the usage identities over random histories with any number of children and judges.

use crate::{
    evidence::{rows, sum},
    toy::usage_of,
    usage::{child_usage, group, record},
};
use proptest::prelude::*;
use std::{collections::BTreeMap, sync::Arc};
use turnery_engine::{Outcome, TurnStop, Usage};
use turnery_sdk::{PromptResult, UsageReport, usage::source};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    // proves: LASH-103, LASH-104, I6, I7, I8, I9, I10, I11
    #[test]
    fn random_history_counts_each_token_once(
        spends in prop::collection::vec((0..4u32, 0..5u8, 0..3usize, 1..100u64), 0..40),
        judge in prop::option::of(1..100u64),
    ) {
        const MODELS: [&str; 3] = ["one", "two", "three"];
        const SOURCES: [&str; 3] = [source::SUBAGENT, source::CHILD, "reviewer"];
        let mut expected: BTreeMap<(String, String), Usage> = BTreeMap::new();
        let mut expect = |source: &str, model: String, n: u64| {
            *expected.entry((source.to_owned(), model)).or_default() += usage_of(n);
        };
        // What each loop spent, and the running sums of each child.
        let mut turns: [Vec<(&str, Option<Usage>)>; 4] = Default::default();
        let mut compacted = [None; 4];
        let mut children: [Vec<_>; 4] = Default::default();
        let mut sums: BTreeMap<(u8, usize), u64> = BTreeMap::new();
        for (at, what, which, n) in spends {
            let at = at as usize;
            match what {
                0 | 1 => {
                    turns[at].push((MODELS[which], Some(usage_of(n))));
                    expect(source::TURN, format!("toy/{}", MODELS[which]), n);
                }
                2 => {
                    let sum: &mut Usage = compacted[at].get_or_insert_default();
                    *sum += usage_of(n);
                    expect(source::COMPACTION, "toy/asked-for".to_owned(), n);
                }
                _ => {
                    let sum = sums.entry((what, which)).or_default();
                    *sum += n;
                    // Loops come in order, so a child's sums must too: keep it in the last loop.
                    children[3].push((what, which, *sum));
                    expect(SOURCES[which], format!("toy/{}", MODELS[which]), n);
                }
            }
        }
        let mut records: Vec<_> = (1..).zip(&turns).map(|(n, turns)| record(n, turns)).collect();
        for (record, (compacted, children)) in records.iter_mut().zip(compacted.iter().zip(&children)) {
            record.compaction_usage = *compacted;
            for (what, which, sum) in children {
                let name = format!("child-{what}-{which}");
                let model = format!("toy/{}", MODELS[*which]);
                record.children_usage.push(child_usage(&name, SOURCES[*which], &model, usage_of(*sum)));
            }
        }
        if let Some(n) = judge {
            for (record, group) in records.iter_mut().skip(1).zip(group(&[2, 3, 4], 3, usage_of(n))) {
                record.parallel_group = Some(group);
            }
            expect(source::EVALUATION, "unknown".to_owned(), n);
        }
        let report = UsageReport::from_records(&records);
        prop_assert_eq!(rows(report.rows()), expected.clone());
        // What one prompt would say that ran these loops: its own, and its children beside it.
        let own = sum(records.iter().map(|record| record.usage));
        let of_children: BTreeMap<_, _> = expected
            .iter()
            .filter(|((source, _), _)| SOURCES.contains(&source.as_str()))
            .map(|(row, usage)| (row.clone(), *usage))
            .collect();
        let result = PromptResult {
            usage: own,
            loops: records.iter().cloned().map(Arc::new).collect(),
            ..PromptResult::new(Outcome::Stopped(TurnStop::Cancelled))
        };
        let children = result.children_usage().into_iter();
        let children: BTreeMap<_, _> = children.map(|row| ((row.source, row.model), row.usage)).collect();
        let of_all_children = sum(of_children.values().copied());
        prop_assert_eq!(children, of_children);
        prop_assert_eq!(result.total_usage(), sum([own, of_all_children]));
        let total = sum(expected.into_values());
        prop_assert_eq!(report.total(), total);
        prop_assert_eq!(sum(report.by_source().into_values()), total);
        prop_assert_eq!(sum(report.by_model().into_values()), total);
    }
}
