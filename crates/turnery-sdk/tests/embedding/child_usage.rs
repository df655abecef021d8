//! Tests of the usage of a child session: live, in the result and in the report.

use crate::{
    fixture::{World, run_hello},
    toy::{ToyStep, usage_of},
};
use turnery_engine::Usage;
use turnery_sdk::{ActivityEvent, PromptActivity, usage::source};

/// Session, purpose, model, turn, usage and sum of a child usage that was shown.
type ReportFigures<'a> = (&'a str, &'a str, &'a str, u32, Option<Usage>, Usage);

fn shown_child_usage(activity: &PromptActivity) -> Option<ReportFigures<'_>> {
    match &activity.event {
        ActivityEvent::ChildUsage {
            session_id,
            source,
            model,
            iteration,
            usage,
            cumulative,
        } => Some((
            session_id.as_str(),
            source,
            model,
            *iteration,
            *usage,
            *cumulative,
        )),
        _ => None,
    }
}

// proves: LASH-66, LASH-101, LASH-102, LASH-103, LASH-104, I6, I7, I11, C-17
#[tokio::test(start_paused = true)]
async fn child_usage_is_live_and_counted_once() {
    let world = World::new(vec![
        vec![ToyStep::Spend(usage_of(1)), ToyStep::Call("c", "hire")],
        vec![ToyStep::Spend(usage_of(2)), ToyStep::Call("d", "hire")],
        vec![ToyStep::Say("done")],
    ]);
    let session = world.session().await;
    let output = run_hello(&session).await;
    let shown: Vec<_> = output
        .activities
        .iter()
        .filter_map(shown_child_usage)
        .collect();
    let of = |kid, iteration, usage, sum| {
        let (usage, sum) = (Some(usage_of(usage)), usage_of(sum));
        (kid, source::SUBAGENT, "toy/kid", iteration, usage, sum)
    };
    assert_eq!(
        shown,
        [
            of("kid-1", 0, 3, 3),
            of("kid-1", 1, 4, 7),
            of("kid-2", 0, 3, 3),
            of("kid-2", 1, 4, 7),
        ]
    );
    // Between the start and the end of the call that it works for, in that call's row.
    let rows: Vec<_> = output
        .activities
        .iter()
        .filter(|activity| *activity.correlation_id.0 == *"c")
        .map(|activity| match &activity.event {
            ActivityEvent::ToolCallStarted { .. } => "start",
            ActivityEvent::ChildUsage { .. } => "child",
            ActivityEvent::ToolCallCompleted { .. } => "end",
            _ => "other",
        })
        .collect();
    assert_eq!(rows, ["start", "child", "child", "end"]);
    assert_eq!(output.result.usage, usage_of(3));
    assert_eq!(output.result.total_usage(), usage_of(3 + 14));
    let report = session.usage_report().await.unwrap();
    let rows: Vec<_> = report
        .rows()
        .iter()
        .map(|row| (&*row.source, &*row.model, row.usage))
        .collect();
    assert_eq!(
        rows,
        [
            ("subagent", "toy/kid", usage_of(14)),
            ("turn", "toy/one", usage_of(3)),
        ]
    );
}
