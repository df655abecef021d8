//! Tests of the usage report of a session.

use crate::{
    fixture::{World, finished, run_hello},
    toy::{ToyStep, usage_of},
};
use serde_json::json;
use std::sync::Arc;
use turnery_engine::{
    ChildUsage, ConfigSnapshot, LlmMessage, LoopId, LoopRecord, Message, MessageStop,
    ParallelGroup, TurnId, TurnRecord, TurnTrigger, Usage,
};
use turnery_sdk::{PromptResult, UsageReport, usage::source};
use turnery_store::MemoryStore;

/// Record of a loop with these turns: model and usage of each.
pub(crate) fn record(n: u32, turns: &[(&str, Option<Usage>)]) -> LoopRecord {
    let loop_id = LoopId::from(format!("s.m.{n}"));
    let at = "2026-11-21T08:00:00Z".parse().unwrap();
    let mut record = LoopRecord::new_running("s".into(), loop_id.clone(), "agent".to_owned(), at);
    record.config = Some(ConfigSnapshot {
        model: "asked-for".to_owned(),
        provider: "toy".to_owned(),
        ..ConfigSnapshot::default()
    });
    for (turn_index, (model, usage)) in (0..).zip(turns) {
        let message_id = turnery_engine::MessageId::from(format!("m{n}.{turn_index}"));
        record.messages.push(Arc::new(LlmMessage {
            message_id: message_id.clone(),
            turn_id: None,
            message: Message::Assistant {
                content: Vec::new(),
                stop: MessageStop::Stop,
                model: (*model).to_owned(),
                provider: "toy".to_owned(),
                usage: *usage,
                error: None,
                request: None,
            },
        }));
        record.turns.push(TurnRecord {
            turn_id: TurnId {
                loop_id: loop_id.clone(),
                turn_index,
            },
            triggered_by: TurnTrigger::User,
            usage: *usage,
            input_messages: Vec::new(),
            output_message: Some(message_id),
            tool_results: Vec::new(),
            started_at: at,
            ended_at: None,
        });
        record.usage += usage.unwrap_or_default();
    }
    record
}

pub(crate) fn child_usage(
    session: &str,
    source: &str,
    model: &str,
    cumulative: Usage,
) -> ChildUsage {
    ChildUsage {
        session_id: session.into(),
        source: source.to_owned(),
        model: model.to_owned(),
        iteration: 0,
        usage: Some(cumulative),
        cumulative,
    }
}

pub(crate) fn group(of: &[u32], winner: u32, judge: Usage) -> Vec<ParallelGroup> {
    let ids: Vec<LoopId> = of
        .iter()
        .map(|n| LoopId::from(format!("s.m.{n}")))
        .collect();
    let group = |(n, index): (&u32, u32)| ParallelGroup {
        all_loop_ids: ids.clone(),
        selected_loop_id: format!("s.m.{winner}").into(),
        selected_config_index: index,
        evaluation_usage: judge,
        judge: None,
        command: None,
        is_selected: *n == winner,
    };
    of.iter().zip(0..).map(group).collect()
}

fn rows(report: &UsageReport) -> Vec<(&str, &str, Usage)> {
    report
        .rows()
        .iter()
        .map(|row| (&*row.source, &*row.model, row.usage))
        .collect()
}

// proves: LASH-105, LASH-106, LASH-112, I8, I9, I10, I11, D-14, LOOP-92
#[test]
fn each_token_is_counted_in_one_row() {
    let mut first = record(1, &[("one", Some(usage_of(1))), ("two", Some(usage_of(2)))]);
    first.children_usage = vec![
        child_usage("kid", source::SUBAGENT, "toy/one", usage_of(10)),
        child_usage("kid", source::SUBAGENT, "toy/two", usage_of(20)),
        child_usage("judge", source::CHILD, "toy/one", usage_of(30)),
    ];
    first.compaction_usage = Some(usage_of(40));
    // A rejected loop, off the active branch, still counts.
    let mut second = record(2, &[("one", None), ("one", Some(usage_of(4)))]);
    second.on_chain = false;
    // The child session went on: this is its new sum, not more of the old one.
    second.children_usage = vec![child_usage(
        "kid",
        source::SUBAGENT,
        "toy/one",
        usage_of(15),
    )];
    let mut branches = vec![
        record(3, &[("one", Some(usage_of(5)))]),
        record(4, &[("two", Some(usage_of(6)))]),
    ];
    for (branch, group) in branches.iter_mut().zip(group(&[3, 4], 4, usage_of(100))) {
        branch.parallel_group = Some(group);
    }
    let records = [vec![first, second], branches].concat();
    let report = UsageReport::from_records(&records);
    assert_eq!(
        rows(&report),
        [
            ("child", "toy/one", usage_of(30)),
            ("compaction", "toy/asked-for", usage_of(40)),
            ("evaluation", "unknown", usage_of(100)),
            ("subagent", "toy/one", usage_of(15)),
            ("subagent", "toy/two", usage_of(20)),
            ("turn", "toy/one", usage_of(1 + 4 + 5)),
            ("turn", "toy/two", usage_of(2 + 6)),
        ]
    );
    assert_eq!(report.total(), usage_of(223));
    let sources: Vec<_> = report.by_source().into_iter().collect();
    assert_eq!(
        sources,
        [
            ("child", usage_of(30)),
            ("compaction", usage_of(40)),
            ("evaluation", usage_of(100)),
            ("subagent", usage_of(35)),
            ("turn", usage_of(18)),
        ]
    );
    let models: Vec<_> = report.by_model().into_iter().collect();
    assert_eq!(
        models,
        [
            ("toy/asked-for", usage_of(40)),
            ("toy/one", usage_of(55)),
            ("toy/two", usage_of(28)),
            ("unknown", usage_of(100)),
        ]
    );
}

// proves: LASH-102, LASH-103, LASH-104, I6, I7, UP-19, LASH-106
#[test]
fn result_separates_own_and_child_usage() {
    let mut first = record(1, &[("one", Some(usage_of(1)))]);
    first.children_usage = vec![
        child_usage("kid", source::SUBAGENT, "toy/two", usage_of(5)),
        child_usage("other", source::SUBAGENT, "toy/two", usage_of(7)),
        child_usage("kid", source::SUBAGENT, "toy/one", usage_of(10)),
    ];
    // The next frame of the same prompt: the child has gone on, and its sum with it.
    let mut second = record(2, &[("one", Some(usage_of(2)))]);
    second.children_usage = vec![child_usage(
        "kid",
        source::SUBAGENT,
        "toy/one",
        usage_of(14),
    )];
    let outcome = finished("done");
    let result = PromptResult {
        usage: usage_of(3),
        loops: vec![Arc::new(first), Arc::new(second)],
        ..PromptResult::new(outcome)
    };
    let children = result.children_usage();
    let children: Vec<_> = children
        .iter()
        .map(|row| (&*row.source, &*row.model, row.usage))
        .collect();
    assert_eq!(
        children,
        [
            ("subagent", "toy/one", usage_of(14)),
            ("subagent", "toy/two", usage_of(12)),
        ]
    );
    assert_eq!(result.total_usage(), usage_of(3 + 14 + 12));
}

// proves: LOOP-61
#[test]
fn loop_without_turns_counts_for_its_configured_model() {
    let mut old = record(1, &[]);
    old.usage = usage_of(3);
    let report = UsageReport::from_records([&old]);
    assert_eq!(rows(&report), [("turn", "toy/asked-for", usage_of(3))]);
    old.config = None;
    let report = UsageReport::from_records([&old]);
    assert_eq!(rows(&report), [("turn", "unknown", usage_of(3))]);
}

// proves: LASH-106, LASH-107, LASH-108, LASH-109, LASH-110, LASH-111, C-16
#[test]
fn report_json_uses_the_public_field_names() {
    let report = UsageReport::from_records([&record(1, &[("one", Some(usage_of(1)))])]);
    assert_eq!(
        json!(report),
        json!({"rows": [{
            "source": "turn",
            "model": "toy/one",
            "input_tokens": 1,
            "output_tokens": 10,
            "cache_read_input_tokens": 100,
            "cache_write_input_tokens": 1000,
            "reasoning_output_tokens": 1,
        }]})
    );
}

// proves: LASH-105, I9, LOOP-92
#[tokio::test(start_paused = true)]
async fn session_report_groups_by_answering_model() {
    let world = World::over(
        Arc::new(MemoryStore::new()),
        vec![
            vec![
                ToyStep::Say("a"),
                ToyStep::Spend(usage_of(1)),
                ToyStep::Call("c", "look"),
            ],
            vec![ToyStep::Say("b"), ToyStep::Spend(usage_of(2))],
            vec![ToyStep::Spend(usage_of(3)), ToyStep::Refuse],
        ],
        vec![vec![ToyStep::Say("c"), ToyStep::Spend(usage_of(4))]],
    );
    let session = world.session().await;
    assert_eq!(
        session.usage_report().await.unwrap(),
        UsageReport::default()
    );
    run_hello(&session).await;
    run_hello(&session).await;
    session.set_model("toy/two").await.unwrap();
    run_hello(&session).await;
    let report = session.usage_report().await.unwrap();
    assert_eq!(
        rows(&report),
        [
            ("turn", "toy/one", usage_of(6)),
            ("turn", "toy/two", usage_of(4))
        ]
    );
    // Another session has spent nothing.
    let other = world.session().await;
    assert_eq!(
        other.usage_report().await.unwrap().total(),
        Usage::default()
    );
    assert_eq!(
        world.reopen(&session).await.usage_report().await.unwrap(),
        report
    );
}
