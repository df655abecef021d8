//! The identities of usage, over random runs with retries, faults, cancels, frames and children, and over
//! random histories, which have groups and summaries besides.

use crate::{
    toy::{Act, spent},
    usage::{child, group, record},
    world::World,
};
use proptest::prelude::*;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use turnery_agent::{
    CancellationToken, PromptResult, TurnActivity, TurnEvent, TurnInput, UsageReport, usage::source,
};
use turnery_engine::{LoopId, Outcome, SessionId, TurnStop, Usage};

/// One call of the model in a random run.
#[derive(Clone, Debug)]
struct Planned {
    retries: u32,
    spends: Option<u64>,
    /// What it does in the end.
    end: u8,
}

impl Planned {
    fn acts(&self) -> Vec<Act> {
        let mut acts: Vec<Act> = (1..=self.retries).map(Act::Retry).collect();
        acts.push(Act::Pause(Duration::from_millis(10)));
        acts.extend(self.spends.map(|n| Act::Spend(spent(n))));
        acts.push(match self.end {
            0..=2 => Act::Say("word"),
            3..=5 => Act::Call("c", "look"),
            6 => Act::Call("c", "fail"),
            7 => Act::Fail,
            8 => Act::Refuse,
            9 => Act::Call("c", "switch"),
            10 => Act::Call("c", "hire"),
            _ => Act::Hang,
        });
        acts
    }
}

fn planned() -> impl Strategy<Value = Planned> {
    (0..3u32, prop::option::of(0..50u64), 0..12u8).prop_map(|(retries, spends, end)| Planned {
        retries,
        spends,
        end,
    })
}

fn sum(parts: impl IntoIterator<Item = Usage>) -> Usage {
    parts.into_iter().fold(Usage::default(), |mut sum, part| {
        sum += part;
        sum
    })
}

fn by_row(report: &UsageReport) -> BTreeMap<(String, String), Usage> {
    let rows = report.rows().iter();
    rows.map(|row| ((row.source.clone(), row.model.clone()), row.usage))
        .collect()
}

/// The last sum of each child session. Each has worked for one call only.
fn children_of(activities: &[TurnActivity]) -> BTreeMap<SessionId, Usage> {
    let sums = activities.iter().filter_map(|it| match &it.event {
        TurnEvent::ChildUsage {
            session_id,
            cumulative,
            ..
        } => Some((session_id.clone(), *cumulative)),
        _ => None,
    });
    sums.collect()
}

/// Prompt after prompt, each cancelled after so many milliseconds at the latest.
async fn run(turns: Vec<Planned>, prompts: &[(u64, bool)]) -> Result<(), TestCaseError> {
    let script: Vec<Vec<Act>> = turns.iter().map(Planned::acts).collect();
    let (one, two) = script.split_at(script.len() / 2);
    let store = Arc::new(turnery_store::MemoryStore::new());
    let world = World::over(store, one.to_vec(), two.to_vec());
    let session = world.session().await;
    let mut own = Vec::new();
    // The last sum of each child session that was shown.
    let mut children: BTreeMap<SessionId, Usage> = BTreeMap::new();
    let mut before = Usage::default();
    for (patience, second) in prompts {
        let model = if *second { "toy/two" } else { "toy/one" };
        session.set_model(model).await.unwrap();
        let token = CancellationToken::new();
        let turn = session.turn(TurnInput::text("hello")).cancel(token.clone());
        let running = tokio::spawn(turn.run());
        tokio::time::sleep(Duration::from_millis(*patience)).await;
        token.cancel();
        let output = running.await.unwrap().unwrap();
        let beside = children_of(&output.activities);
        children.extend(beside.clone());
        // I3, I4: each turn tells usage once, with the sum of its loop so far.
        let mut so_far: BTreeMap<LoopId, (usize, Usage)> = BTreeMap::new();
        for activity in &output.activities {
            if let TurnEvent::Usage { usage, cumulative } = &activity.event {
                let (told, sum) = so_far.entry(activity.id.loop_id.clone()).or_default();
                *sum += usage.unwrap_or_default();
                *told += 1;
                prop_assert_eq!(cumulative, sum);
            }
        }
        let records = world.records(&session).await;
        for record in &records[records.len() - output.result.loops.len()..] {
            let (told, sum) = so_far.remove(&record.loop_id).unwrap_or_default();
            prop_assert_eq!(told, record.turns.len());
            prop_assert_eq!(record.usage, sum);
            own.push(sum);
        }
        prop_assert!(so_far.is_empty());
        // I5: the result's is the sum of its loops, one for each frame.
        let loops = output.result.loops.iter().map(|record| record.usage);
        prop_assert_eq!(output.result.usage, sum(loops));
        // I6, I7: its children are those that it has shown.
        let rows = output.result.children_usage();
        let of_children = sum(rows.iter().map(|row| row.usage));
        prop_assert_eq!(of_children, sum(beside.into_values()));
        let all = sum([output.result.usage, of_children]);
        prop_assert_eq!(output.result.total_usage(), all);
        // I13: the ledger never shrinks.
        let report = session.usage_report().await.unwrap();
        let of_children = sum(children.values().copied());
        let of_loops = sum(own.iter().copied());
        prop_assert_eq!(report.total(), sum([of_loops, of_children]));
        prop_assert!(report.total().total() >= before.total());
        before = report.total();
    }
    // I12: what was accepted is the ledger, row by row; what was not is beside it.
    let report = session.usage_report().await.unwrap();
    let mut ledger = by_row(&report);
    ledger.retain(|(source, _), _| source != source::SUBAGENT);
    let calls = world.calls();
    let mut accepted: BTreeMap<(String, String), Usage> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.accepted) {
        let spent = call.usage.unwrap_or_default();
        if spent != Usage::default() {
            let key = (call.source.to_owned(), call.model.clone());
            *accepted.entry(key).or_default() += spent;
        }
    }
    prop_assert_eq!(ledger, accepted);
    prop_assert!(
        calls
            .iter()
            .all(|call| call.accepted || call.usage.is_none())
    );
    let records = world.records(&session).await;
    let retried: usize = records.iter().map(|record| record.attempts.len()).sum();
    let turns: usize = records.iter().map(|record| record.turns.len()).sum();
    // A turn that was cancelled before its model was called made no attempt.
    prop_assert!(calls.len() <= turns + retried);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    // proves: LASH-98, LASH-100, LASH-101, LASH-102, I3, I4, I5, I6, I7, I8, I9, I11, I12, I13
    #[test]
    fn every_random_run_adds_up_on_all_channels(
        turns in prop::collection::vec(planned(), 2..12),
        prompts in prop::collection::vec((0..10_000u64, any::<bool>()), 1..5),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(turns, &prompts))?;
    }

    // proves: LASH-103, LASH-104, I6, I7, I8, I9, I10, I11
    #[test]
    fn every_random_history_reports_each_token_once(
        spends in prop::collection::vec((0..4u32, 0..5u8, 0..3usize, 1..100u64), 0..40),
        judge in prop::option::of(1..100u64),
    ) {
        const MODELS: [&str; 3] = ["one", "two", "three"];
        const SOURCES: [&str; 3] = [source::SUBAGENT, source::CHILD, "reviewer"];
        let mut expected: BTreeMap<(String, String), Usage> = BTreeMap::new();
        let mut expect = |source: &str, model: String, n: u64| {
            *expected.entry((source.to_owned(), model)).or_default() += spent(n);
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
                    turns[at].push((MODELS[which], Some(spent(n))));
                    expect(source::TURN, format!("toy/{}", MODELS[which]), n);
                }
                2 => {
                    let sum: &mut Usage = compacted[at].get_or_insert_default();
                    *sum += spent(n);
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
                record.children_usage.push(child(&name, SOURCES[*which], &model, spent(*sum)));
            }
        }
        if let Some(n) = judge {
            for (record, group) in records.iter_mut().skip(1).zip(group(&[2, 3, 4], 3, spent(n))) {
                record.parallel_group = Some(group);
            }
            expect(source::EVALUATION, "unknown".to_owned(), n);
        }
        let report = UsageReport::of(&records);
        prop_assert_eq!(by_row(&report), expected.clone());
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
            ..PromptResult::new(Outcome::Stopped(TurnStop::Cancelled), None)
        };
        let told = result.children_usage().into_iter();
        let told: BTreeMap<_, _> = told.map(|row| ((row.source, row.model), row.usage)).collect();
        let of_all_children = sum(of_children.values().copied());
        prop_assert_eq!(told, of_children);
        prop_assert_eq!(result.total_usage(), sum([own, of_all_children]));
        let total = sum(expected.into_values());
        prop_assert_eq!(report.total(), total);
        prop_assert_eq!(sum(report.by_source().into_values()), total);
        prop_assert_eq!(sum(report.by_model().into_values()), total);
    }
}
