//! Tests of frames, of the totals of a prompt with several loops, and of parallel calls and children.

use crate::fixture::{
    EmbeddingFixture, LARGE_CAPACITY, ModelAct, drain, finished, live_events, run_text, start,
    start_text, usage_of, yield_while,
};
use turnery_agent::{CancellationToken, UsageRow};
use turnery_engine::{
    CallDetail, ContinuationKind, EventKind, LoopId, Outcome, ToolEnvelope, TurnStop, usage::source,
};
use turnery_tools::{Progress, ToolCx};

// proves: LASH-12, LASH-13, I5, UP-21
#[tokio::test(start_paused = true)]
pub(crate) async fn prompt_continues_in_opened_frame() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Call("c", "switch"), ModelAct::Spend(10, 1)],
        &[ModelAct::Say("dug"), ModelAct::Spend(20, 2)],
        &[ModelAct::Say("deeper")],
        &[ModelAct::Say("deeper")],
    ]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "go").await;
    assert_eq!(result.outcome, finished("dug"));
    assert_eq!(result.usage, usage_of(30, 3));
    let ids: Vec<&LoopId> = result.loop_ids().collect();
    let id = session.id();
    assert_eq!(
        ids.iter().map(|id| id.as_str()).collect::<Vec<_>>(),
        [format!("{id}.puppet-one.1"), format!("{id}.puppet-one.2")]
    );
    let [first, second] = &result.loops[..] else {
        panic!("{result:?}");
    };
    assert_eq!(first.prompt_id, second.prompt_id);
    assert_eq!(second.continuation_kind, ContinuationKind::Default);
    assert_eq!(second.parent_loop_id.as_ref(), Some(&first.loop_id));
    let frame = second.frame.as_ref().unwrap();
    assert_eq!(
        (&frame.opened_by, frame.task.as_str()),
        (&first.loop_id, "dig here")
    );
    // Both loops are shown, one after the other, and each is stored before its end is shown.
    let ends = live_events(&drain(&mut seen));
    let ends = ends
        .iter()
        .filter(|event| matches!(event.kind, EventKind::LoopEnd { .. }));
    assert_eq!(ends.map(|event| &event.loop_id).collect::<Vec<_>>(), ids);
    // What was is_reported before is not seen in the frame, now or after a load.
    assert_eq!(world.model.request(1), ["dig here"]);
    run_text(&session, "on").await;
    assert_eq!(world.model.request(2), ["dig here", "dug", "on"]);
    session.close().await;
    let (loaded, _seen) = world.open(session.id(), false).await;
    let third = run_text(&loaded, "on").await;
    assert_eq!(
        world.model.request(3),
        ["dig here", "dug", "on", "deeper", "on"]
    );
    assert_eq!(third.loops[0].frame_id, second.frame_id);
}

// proves: UP-31
#[tokio::test(start_paused = true)]
async fn prompt_opens_at_most_sixteen_frames() {
    let switch: &[ModelAct] = &[ModelAct::Call("c", "switch")];
    let world = EmbeddingFixture::new(&[switch; 20]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "go").await;
    assert_eq!(result.loops.len(), 17);
    let message =
        "switch: this prompt has opened as many frames as one may; send another prompt to go on";
    let stop = TurnStop::RuntimeError {
        message: message.to_owned(),
    };
    assert_eq!(result.outcome, Outcome::Stopped(stop));
    // The record agrees with the events shown.
    let stored = world.loops(session.id()).await;
    assert_eq!(stored.len(), 17);
    let last = &stored[16];
    assert_eq!(last.outcome, Some(result.outcome));
    assert!(matches!(
        stored[15].outcome,
        Some(Outcome::FrameSwitch { .. })
    ));
    // The lane is free.
    run_text(&session, "again").await;
}

#[tokio::test(start_paused = true)]
async fn cancel_between_loops_ends_the_prompt() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Call("c", "switch")], &[ModelAct::Hang]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let ticket = start_text(&session, "go");
    yield_while(|| world.model.requests.lock().unwrap().len() < 2).await;
    session.cancel_prompts();
    let result = ticket.result().await.unwrap();
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    assert_eq!(result.loops.len(), 2);
}

// proves: C-6, UP-20, TURN-48
#[tokio::test(start_paused = true)]
pub(crate) async fn parallel_calls_run_concurrently() {
    // Each waits for the other: one after the other they would never end.
    let both: &[ModelAct] = &[ModelAct::Call("a", "meet"), ModelAct::Call("b", "meet")];
    let world = EmbeddingFixture::new(&[both, &[ModelAct::Say("met")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let met = start_text(&session, "go").result();
    let met = tokio::time::timeout(std::time::Duration::from_secs(60), met).await;
    let met = met.expect("they never met").unwrap();
    let calls = met.executions();
    let ids: Vec<&str> = calls
        .iter()
        .map(|call| call.call.call_id.as_str())
        .collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(world.model.request(1), ["go", "", "met", "met"]);
}

// proves: LASH-101, LASH-103, LASH-104, I6, I7, C-17, TURN-46
#[tokio::test(start_paused = true)]
async fn child_usage_is_separate_from_own_usage() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Call("c", "spend"), ModelAct::Spend(10, 1)],
        &[ModelAct::Say("done"), ModelAct::Spend(20, 2)],
    ]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "go").await;
    assert_eq!(result.usage, usage_of(30, 3));
    let child = UsageRow {
        source: source::SUBAGENT.to_owned(),
        model: "puppet/two".to_owned(),
        usage: usage_of(0, 5),
    };
    assert_eq!(result.children_usage(), [child]);
    assert_eq!(result.total_usage(), usage_of(30, 8));
    let events = live_events(&drain(&mut seen));
    let is_reported = events.iter().any(
        |event| matches!(&event.kind, EventKind::ToolProgress { text, .. } if text == "half way"),
    );
    assert!(is_reported);
}

/// Runs a tool that reports twice and then waits until it is cancelled.
pub(crate) async fn report_and_wait(cx: &ToolCx) -> ToolEnvelope {
    for title in ["a quarter", "a half"] {
        let detail = CallDetail {
            title: title.to_owned(),
            ..CallDetail::default()
        };
        cx.progress.send(Progress::Detail(detail)).await.unwrap();
    }
    cx.cancel.cancelled().await;
    ToolEnvelope::text("stopped half way")
}

/// Reports of a running tool are passed on at once and in order.
// proves: TURN-41
#[tokio::test(start_paused = true)]
async fn reports_of_running_tool_are_events() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Call("c", "half_done")]]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let cancel = CancellationToken::new();
    let prompt = start(&session, "go", cancel.clone());
    let mut reports = Vec::new();
    // The tool runs until it is cancelled.
    while reports.len() < 2 {
        tokio::task::yield_now().await;
        reports.extend(
            live_events(&drain(&mut seen))
                .into_iter()
                .filter_map(|event| match event.kind {
                    EventKind::ToolExecutionUpdate { call_id, detail } => {
                        Some((call_id.to_string(), detail.title))
                    }
                    EventKind::ToolExecutionEnd { .. } => panic!("it still runs"),
                    _ => None,
                }),
        );
    }
    let expected = [("c", "a quarter"), ("c", "a half")];
    assert_eq!(
        reports,
        expected.map(|(id, title)| (id.to_owned(), title.to_owned()))
    );
    cancel.cancel();
    prompt.result().await.unwrap();
}
