//! The coarsest channel: what a session has spent, for what and with which model.

use crate::{
    toy::{Act, spent},
    world::{World, hello},
};
use serde_json::json;
use std::sync::Arc;
use turnery_agent::{PromptResult, UsageReport, usage::source};
use turnery_engine::{
    ChildUsage, ConfigSnapshot, LlmMessage, LoopId, LoopRecord, Message, MessageStop, Outcome,
    ParallelGroup, Turn, TurnFinish, TurnId, TurnTrigger, Usage,
};
use turnery_store::MemoryStore;

/// A loop of so many turns, each answered by a model for so much.
pub(crate) fn record(n: u32, turns: &[(&str, Option<Usage>)]) -> LoopRecord {
    let loop_id = LoopId::from(format!("s.m.{n}"));
    let at = "2026-11-21T08:00:00Z".parse().unwrap();
    let mut record = LoopRecord::begun("s".into(), loop_id.clone(), "agent".to_owned(), at);
    record.config = Some(ConfigSnapshot {
        model: "asked-for".to_owned(),
        provider: "toy".to_owned(),
        config_id: None,
        name: None,
        api: None,
        base_url: None,
        reasoning: None,
        context_window: None,
        max_tokens: None,
        thinking_level: None,
        temperature: None,
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
            },
        }));
        record.turns.push(Turn {
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

pub(crate) fn child(session: &str, source: &str, model: &str, cumulative: Usage) -> ChildUsage {
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

// proves: LASH-105, LASH-106, LASH-112, I8, I9, I10, I11, D-14
#[test]
fn each_token_is_in_one_row() {
    let mut first = record(1, &[("one", Some(spent(1))), ("two", Some(spent(2)))]);
    first.children_usage = vec![
        child("kid", source::SUBAGENT, "toy/one", spent(10)),
        child("kid", source::SUBAGENT, "toy/two", spent(20)),
        child("judge", source::CHILD, "toy/one", spent(30)),
    ];
    first.compaction_usage = Some(spent(40));
    // Refused, and off the chain: paid for all the same.
    let mut second = record(2, &[("one", None), ("one", Some(spent(4)))]);
    second.on_chain = false;
    // The child session went on: this is its new sum, not more of the old one.
    second.children_usage = vec![child("kid", source::SUBAGENT, "toy/one", spent(15))];
    let mut branches = vec![
        record(3, &[("one", Some(spent(5)))]),
        record(4, &[("two", Some(spent(6)))]),
    ];
    for (branch, group) in branches.iter_mut().zip(group(&[3, 4], 4, spent(100))) {
        branch.parallel_group = Some(group);
    }
    let records = [vec![first, second], branches].concat();
    let report = UsageReport::of(&records);
    assert_eq!(
        rows(&report),
        [
            ("child", "toy/one", spent(30)),
            ("compaction", "toy/asked-for", spent(40)),
            ("evaluation", "unknown", spent(100)),
            ("subagent", "toy/one", spent(15)),
            ("subagent", "toy/two", spent(20)),
            ("turn", "toy/one", spent(1 + 4 + 5)),
            ("turn", "toy/two", spent(2 + 6)),
        ]
    );
    assert_eq!(report.total(), spent(223));
    let sources: Vec<_> = report.by_source().into_iter().collect();
    assert_eq!(
        sources,
        [
            ("child", spent(30)),
            ("compaction", spent(40)),
            ("evaluation", spent(100)),
            ("subagent", spent(35)),
            ("turn", spent(18)),
        ]
    );
    let models: Vec<_> = report.by_model().into_iter().collect();
    assert_eq!(
        models,
        [
            ("toy/asked-for", spent(40)),
            ("toy/one", spent(55)),
            ("toy/two", spent(28)),
            ("unknown", spent(100)),
        ]
    );
}

// proves: LASH-102, LASH-103, LASH-104, I6, I7
#[test]
fn a_prompt_tells_its_own_usage_and_that_of_its_children_beside_it() {
    let mut first = record(1, &[("one", Some(spent(1)))]);
    first.children_usage = vec![
        child("kid", source::SUBAGENT, "toy/two", spent(5)),
        child("other", source::SUBAGENT, "toy/two", spent(7)),
        child("kid", source::SUBAGENT, "toy/one", spent(10)),
    ];
    // The next frame of the same prompt: the child has gone on, and its sum with it.
    let mut second = record(2, &[("one", Some(spent(2)))]);
    second.children_usage = vec![child("kid", source::SUBAGENT, "toy/one", spent(14))];
    let text = "done".into();
    let outcome = Outcome::Finished(TurnFinish::AssistantMessage { text });
    let result = PromptResult {
        usage: spent(3),
        loops: vec![Arc::new(first), Arc::new(second)],
        ..PromptResult::new(outcome, None)
    };
    let children = result.children_usage();
    let children: Vec<_> = children
        .iter()
        .map(|row| (&*row.source, &*row.model, row.usage))
        .collect();
    assert_eq!(
        children,
        [
            ("subagent", "toy/one", spent(14)),
            ("subagent", "toy/two", spent(12)),
        ]
    );
    assert_eq!(result.total_usage(), spent(3 + 14 + 12));
}

// proves: LOOP-61
#[test]
fn a_loop_from_before_there_were_turns_counts_for_the_model_it_asked_for() {
    let mut old = record(1, &[]);
    old.usage = spent(3);
    let report = UsageReport::of([&old]);
    assert_eq!(rows(&report), [("turn", "toy/asked-for", spent(3))]);
    old.config = None;
    let report = UsageReport::of([&old]);
    assert_eq!(rows(&report), [("turn", "unknown", spent(3))]);
}

// proves: LASH-106, LASH-107, LASH-108, LASH-109, LASH-110, LASH-111, C-16
#[test]
fn the_report_has_the_names_of_all_surfaces() {
    let report = UsageReport::of([&record(1, &[("one", Some(spent(1)))])]);
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

// proves: LASH-105, I9
#[tokio::test(start_paused = true)]
async fn a_session_reports_all_its_loops_by_the_models_that_answered() {
    let world = World::over(
        Arc::new(MemoryStore::new()),
        vec![
            vec![Act::Say("a"), Act::Spend(spent(1)), Act::Call("c", "look")],
            vec![Act::Say("b"), Act::Spend(spent(2))],
            vec![Act::Spend(spent(3)), Act::Refuse],
        ],
        vec![vec![Act::Say("c"), Act::Spend(spent(4))]],
    );
    let session = world.session().await;
    assert_eq!(
        session.usage_report().await.unwrap(),
        UsageReport::default()
    );
    hello(&session).await;
    hello(&session).await;
    session.set_model("toy/two").await.unwrap();
    hello(&session).await;
    let report = session.usage_report().await.unwrap();
    assert_eq!(
        rows(&report),
        [("turn", "toy/one", spent(6)), ("turn", "toy/two", spent(4))]
    );
    // Another session has spent nothing.
    let other = world.session().await;
    assert_eq!(
        other.usage_report().await.unwrap().total(),
        Usage::default()
    );
    assert_eq!(
        world.again(&session).await.usage_report().await.unwrap(),
        report
    );
}
