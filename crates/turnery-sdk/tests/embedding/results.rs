//! Tests of prompt outcomes: a final value is the one that was shown.

use crate::{
    fixture::{World, describe_all, finished, run_hello},
    toy::{ToyStep, usage_of},
};
use serde_json::json;
use turnery_engine::{Outcome, OutcomeCategory, TurnFinish, TurnStop};
use turnery_sdk::{ActivityEvent, render_value};

/// Runs a prompt whose model calls this tool; returns the outcome and the activities.
async fn run_with_tool(tool: &'static str) -> (Outcome, Vec<ActivityEvent>) {
    let world = World::new(vec![
        vec![ToyStep::Call("c", tool)],
        vec![ToyStep::Say("over")],
    ]);
    let output = run_hello(&world.session().await).await;
    let shown = output.activities.into_iter().map(|it| it.event);
    (output.result.outcome, shown.collect())
}

// proves: LASH-7, LASH-11, LASH-47, LASH-64, LASH-77, UP-21
#[tokio::test(start_paused = true)]
async fn tool_value_ends_prompt_and_is_shown() {
    let (outcome, shown) = run_with_tool("rate").await;
    let Some(ActivityEvent::ToolValue { tool_name, value }) = shown.last() else {
        panic!("{shown:#?}")
    };
    assert_eq!(
        outcome,
        Outcome::Finished(
            TurnFinish::ToolValue {
                tool_name: "rate".to_owned(),
                value: json!({"rating": 3}),
            },
            None
        )
    );
    assert_eq!((&**tool_name, &**value), ("rate", &json!({"rating": 3})));
    assert_eq!(render_value(value), "{\n  \"rating\": 3\n}");
}

// proves: LASH-6, LASH-47, LASH-63, LASH-77
#[tokio::test(start_paused = true)]
async fn submitted_value_ends_prompt_and_is_shown() {
    let (outcome, shown) = run_with_tool("submit").await;
    let Some(ActivityEvent::FinalValue { value }) = shown.last() else {
        panic!("{shown:#?}")
    };
    assert_eq!(**value, json!(["a", "b"]));
    let value = json!(["a", "b"]);
    assert_eq!(
        outcome,
        Outcome::Finished(TurnFinish::FinalValue { value }, None)
    );
}

// proves: LASH-4, LASH-27, LASH-48, LASH-77, LASH-14
#[tokio::test(start_paused = true)]
async fn other_outcomes_show_no_value() {
    let is_value = |event: &ActivityEvent| {
        matches!(
            event,
            ActivityEvent::FinalValue { .. } | ActivityEvent::ToolValue { .. }
        )
    };
    let (outcome, shown) = run_with_tool("give_up").await;
    assert_eq!(outcome.category(), OutcomeCategory::Stopped);
    assert_eq!(
        outcome,
        Outcome::Stopped(TurnStop::ToolError {
            tool_name: "give_up".to_owned(),
            value: json!("no way"),
        })
    );
    assert!(!shown.iter().any(is_value));
    let (outcome, shown) = run_with_tool("look").await;
    assert_eq!(outcome, finished("over"));
    assert!(!shown.iter().any(is_value));
}

// proves: LASH-12, LASH-13, I5
#[tokio::test(start_paused = true)]
async fn result_sums_loops_of_all_frames() {
    let world = World::new(vec![
        vec![ToyStep::Spend(usage_of(1)), ToyStep::Call("c", "switch")],
        vec![ToyStep::Spend(usage_of(2)), ToyStep::Say("done")],
    ]);
    let session = world.session().await;
    let output = run_hello(&session).await;
    assert_eq!(
        describe_all(&output.activities),
        [
            "usage",
            "start switch",
            "end switch: decided",
            "say done",
            "usage"
        ]
    );
    // Each loop counts its own.
    let sums: Vec<_> = output
        .activities
        .iter()
        .filter_map(|activity| match activity.event {
            ActivityEvent::Usage { cumulative, .. } => Some(cumulative),
            _ => None,
        })
        .collect();
    assert_eq!(sums, [usage_of(1), usage_of(2)]);
    assert_eq!(output.result.usage, usage_of(3));
    assert_eq!(output.result.loop_ids().count(), 2);
    assert_eq!(output.result.outcome, finished("done"));
    let report = session.usage_report().await.unwrap();
    assert_eq!(report.total(), usage_of(3));
}

// proves: UP-31
#[tokio::test(start_paused = true)]
async fn frame_limit_stops_the_prompt() {
    let world = World::new(vec![vec![ToyStep::Call("c", "switch")]; 30]);
    let session = world.session().await;
    let output = run_hello(&session).await;
    let outcome = &output.result.outcome;
    assert!(matches!(
        outcome,
        Outcome::Stopped(TurnStop::RuntimeError { .. })
    ));
    // The first frame and sixteen more.
    assert_eq!(output.result.loops.len(), 17);
    assert_eq!(world.toy.requests.lock().unwrap().len(), 17);
}

// proves: LASH-18, LASH-36
#[tokio::test(start_paused = true)]
async fn provider_error_is_an_outcome() {
    let world = World::new(vec![
        vec![ToyStep::Say("half"), ToyStep::Fail],
        vec![ToyStep::Say("whole")],
    ]);
    let session = world.session().await;
    let output = run_hello(&session).await;
    let outcome = &output.result.outcome;
    assert!(matches!(
        outcome,
        Outcome::Stopped(TurnStop::ProviderError(_))
    ));
    assert_eq!(describe_all(&output.activities), ["say half", "usage"]);
    let output = run_hello(&session).await;
    assert_eq!(output.result.outcome.category(), OutcomeCategory::Finished);
}
