//! Tests of sub-agents: a child session has no more permissions than its parent, and ends with it.

use crate::{
    fixture::{
        EmbeddingFixture, LARGE_CAPACITY, ModelAct, choose, drain, hook_set, live_events, run_text,
        start_text, wait_for_event,
    },
    hooks::RecordingHooks,
};
use std::sync::Arc;
use turnery_agent::{PromptOptions, PromptResult};
use turnery_engine::{
    Content, ContinuationKind, EventKind, HookRequest, HookVerdict, Limits, LoopRecord, Message,
    Outcome, SessionId, TurnStop, TurnTrigger, oracle,
};
use turnery_store::{ListQuery, lineage::child_loop_ids};
use turnery_tools::{Mode, Rule};

/// Returns the tool results that the parent's model reads.
fn tool_results(result: &PromptResult) -> Vec<String> {
    let texts = result
        .messages()
        .filter_map(|message| match &message.message {
            Message::ToolResult { .. } => Some(message.message.text()),
            Message::System { .. } | Message::User { .. } | Message::Assistant { .. } => None,
        });
    texts.collect()
}

fn is_output(kind: &EventKind) -> bool {
    matches!(kind, EventKind::ToolExecutionOutput { .. })
}

/// The child sessions of all sessions, with their loops.
pub(crate) async fn children(world: &EmbeddingFixture) -> Vec<(SessionId, Vec<Arc<LoopRecord>>)> {
    let query = ListQuery {
        spawned: true,
        ..ListQuery::default()
    };
    let mut found = Vec::new();
    for info in world.store.list(query).await.unwrap().sessions {
        if info.spawned_by.is_some() {
            let loops = world.store.loops(&info.id, 0).await.unwrap();
            found.push((info.id, loops));
        }
    }
    found
}

// proves: LOOP-14, LOOP-24, LOOP-63, LOOP-65, LOOP-66, LOOP-67, LOOP-68, LOOP-69, LOOP-88, TURN-17, TURN-45, UP-18, S7
#[tokio::test(start_paused = true)]
async fn sub_agent_runs_in_own_session_and_answers() {
    let world = EmbeddingFixture::with_sub_agents(
        &[
            &[ModelAct::Say("hello")],
            &[ModelAct::Spend(10, 1), ModelAct::Delegate("t", false)],
            &[
                ModelAct::Spend(3, 4),
                ModelAct::Say("go"),
                ModelAct::Say("ld"),
            ],
            &[ModelAct::Spend(20, 2), ModelAct::Say("thanks")],
        ],
        |settings| settings.agent_id = "digger".into(),
    );
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "hi").await;
    drain(&mut seen);
    let result = run_text(&session, "find something").await;
    assert_eq!(tool_results(&result), ["go\nld"]);
    assert_eq!(world.model.request(2), ["dig"]);
    let [(child, loops)] = &children(&world).await[..] else {
        panic!("one child")
    };
    let parent = &result.loops[0];
    let own = &loops[0];
    // The calling loop, which is not the first of its session, has the child as a link only.
    assert_eq!(parent.loop_id.as_str().rsplit('.').next(), Some("2"));
    assert_eq!(own.parent_loop_id.as_ref(), Some(&parent.loop_id));
    let mut all = world.loops(session.id()).await;
    all.extend(loops.iter().cloned());
    assert_eq!(child_loop_ids(parent, &all).count(), 0);
    assert_eq!(own.continuation_kind, ContinuationKind::Initial);
    assert_eq!(own.turns[0].triggered_by, TurnTrigger::SubAgent);
    assert_eq!(
        (&*parent.agent_id, &*own.agent_id),
        ("digger", "digger/task")
    );
    let info = world.store.info(child).await.unwrap();
    let spawned_by = info.spawned_by.unwrap();
    assert_eq!(spawned_by.session_id, *session.id());
    assert_eq!(spawned_by.loop_id, parent.loop_id);
    assert_eq!(spawned_by.call_id.as_str(), "t");
    let [link] = &parent.child_loop_refs[..] else {
        panic!("one link")
    };
    assert_eq!(link.tool_call_id.as_str(), "t");
    assert_eq!(link.tool_name, "task");
    assert_eq!(link.child_loop_id, own.loop_id);
    assert_eq!(link.child_session_id, *child);
    let live = live_events(&drain(&mut seen));
    let shown: String = live
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolExecutionOutput { call_id, text } if call_id.as_str() == "t" => {
                Some(text.as_str())
            }
            _ => None,
        })
        .collect();
    assert_eq!(shown.replace('\n', ""), "gold");
    oracle::check_live(&live).unwrap();
}

// proves: C-17, I6, I7, LASH-66, LASH-101, LASH-102, LASH-103, LASH-104, UP-19, UP-18
#[tokio::test(start_paused = true)]
async fn child_usage_is_reported_live_and_separately() {
    let world = EmbeddingFixture::with_sub_agents(
        &[
            &[ModelAct::Spend(10, 1), ModelAct::Delegate("t", false)],
            &[ModelAct::Spend(3, 4), ModelAct::Call("l", "look")],
            &[ModelAct::Spend(5, 6), ModelAct::Say("gold")],
            &[ModelAct::Spend(20, 2), ModelAct::Say("thanks")],
        ],
        |_| {},
    );
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "find something").await;
    let reported: Vec<(u32, u64)> = live_events(&drain(&mut seen))
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ChildUsageReported { child, .. } => {
                Some((child.iteration, child.cumulative.total()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(reported, [(0, 7), (1, 18)]);
    assert_eq!(result.usage.total(), 33);
    assert_eq!(result.total_usage().total(), 51);
    let [row] = &result.children_usage()[..] else {
        panic!("one row")
    };
    assert_eq!((&*row.source, &*row.model), ("subagent", "puppet/one"));
}

// proves: THEME-14
#[tokio::test(start_paused = true)]
async fn child_permission_request_names_parent_call() {
    let world = EmbeddingFixture::with_sub_agents(
        &[
            &[ModelAct::Delegate("t", false)],
            &[ModelAct::Call("r", "ring")],
            &[ModelAct::Say("rung")],
            &[ModelAct::Say("thanks")],
        ],
        |_| {},
    )
    .with_answers(&[choose("allow_once")]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "ring").await;
    assert_eq!(tool_results(&result), ["rung"]);
    assert_eq!(*world.ran.lock().unwrap(), ["ring"]);
    let asked = world.client.asked.lock().unwrap();
    assert_eq!(asked[0].session_id, *session.id());
    assert_eq!(asked[0].call_id.as_str(), "t");
    assert_eq!(asked[0].tool_name, "ring");
}

// proves: THEME-7
#[tokio::test(start_paused = true)]
async fn child_is_bound_by_parent_policy() {
    let rule: Rule = "shell(ring-the-bell:*)".parse().unwrap();
    let denies = |settings: &mut turnery_agent::Settings| {
        settings.mode = Mode::Auto;
        settings.deny = vec![rule.clone()];
    };
    let plans = |settings: &mut turnery_agent::Settings| settings.mode = Mode::Plan;
    let script: &[&[ModelAct]] = &[
        &[ModelAct::Delegate("t", false)],
        &[ModelAct::Call("r", "ring")],
        &[ModelAct::Say("could not")],
        &[ModelAct::Say("pity")],
    ];
    let reads: &[&[ModelAct]] = &[
        &[ModelAct::Delegate("t", true)],
        &[ModelAct::Call("r", "ring")],
        &[ModelAct::Say("could not")],
        &[ModelAct::Say("pity")],
    ];
    let free = |settings: &mut turnery_agent::Settings| settings.mode = Mode::Auto;
    for world in [
        EmbeddingFixture::with_sub_agents(script, denies),
        EmbeddingFixture::with_sub_agents(script, plans),
        EmbeddingFixture::with_sub_agents(reads, free),
    ] {
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        run_text(&session, "ring").await;
        assert!(world.ran.lock().unwrap().is_empty());
        assert!(world.client.asked.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn stricter_mode_applies_to_running_child() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let world = EmbeddingFixture::with_sub_agents(
        &[
            &[ModelAct::Delegate("t", false)],
            &[ModelAct::Wait(gate.clone()), ModelAct::Call("r", "ring")],
            &[ModelAct::Say("could not")],
            &[ModelAct::Say("pity")],
        ],
        |settings| settings.mode = Mode::Auto,
    );
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let ticket = start_text(&session, "ring");
    // The child has begun: its first call of the model waits.
    while world.model.requests.lock().unwrap().len() < 2 {
        seen.recv().await.unwrap();
        tokio::task::yield_now().await;
    }
    session.set_mode(Mode::Plan).await.unwrap();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    gate.notify_one();
    ticket.result().await.unwrap();
    assert!(world.ran.lock().unwrap().is_empty());
}

// proves: UP-18, THEME-14
#[tokio::test(start_paused = true)]
async fn cancel_reaches_child_and_is_recorded() {
    let world = EmbeddingFixture::with_sub_agents(
        &[
            &[ModelAct::Delegate("t", false)],
            &[ModelAct::Say("so far"), ModelAct::Hang],
        ],
        |_| {},
    );
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let ticket = start_text(&session, "find something");
    wait_for_event(&mut seen, is_output).await;
    session.cancel_prompts();
    let cancelled = Outcome::Stopped(TurnStop::Cancelled);
    let result = ticket.result().await.unwrap();
    assert_eq!(result.outcome, cancelled);
    assert_eq!(*world.model.active_calls.lock().unwrap(), 0);
    let [(_, loops)] = &children(&world).await[..] else {
        panic!("one child")
    };
    assert_eq!(loops[0].outcome, Some(cancelled));
    assert_eq!(result.loops[0].child_loop_refs.len(), 1);
}

// proves: PROMPT-12, G-17
#[tokio::test(start_paused = true)]
async fn new_prompt_does_not_end_running_child() {
    let signal = Arc::new(tokio::sync::Notify::new());
    let world = EmbeddingFixture::with_sub_agents(
        &[
            &[ModelAct::Delegate("t", false)],
            &[
                ModelAct::Say("so far"),
                ModelAct::Wait(signal.clone()),
                ModelAct::Say("gold"),
            ],
            &[ModelAct::Say("thanks")],
            &[ModelAct::Say("the second")],
        ],
        |_| {},
    );
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let first = start_text(&session, "find something");
    wait_for_event(&mut seen, is_output).await;
    let second = start_text(&session, "and another thing");
    // The new prompt has had every chance to affect the child.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        *world.model.active_calls.lock().unwrap(),
        1,
        "the child still works"
    );
    signal.notify_one();
    let first = first.result().await.unwrap();
    assert_eq!(tool_results(&first), ["so far\ngold"]);
    let second = second.result().await.unwrap();
    for result in [&first, &second] {
        assert!(
            matches!(result.outcome, Outcome::Finished(..)),
            "{result:?}"
        );
    }
}

// proves: LOOP-65, LOOP-66
#[tokio::test(start_paused = true)]
async fn children_of_one_response_run_in_parallel() {
    let world = EmbeddingFixture::with_sub_agents(
        &[
            &[
                ModelAct::Delegate("a", false),
                ModelAct::Delegate("b", false),
            ],
            // Each waits for the other.
            &[ModelAct::Call("m", "meet")],
            &[ModelAct::Call("m", "meet")],
            &[ModelAct::Say("met")],
            &[ModelAct::Say("met")],
            &[ModelAct::Say("thanks")],
        ],
        |_| {},
    );
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "meet").await;
    assert_eq!(tool_results(&result), ["met", "met"]);
    assert_eq!(children(&world).await.len(), 2);
    let links = result.loops[0].child_loop_refs.iter();
    let mut calls: Vec<&str> = links.map(|link| link.tool_call_id.as_str()).collect();
    // In the order in which they ended.
    calls.sort_unstable();
    assert_eq!(calls, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn failed_child_is_a_failed_call() {
    let world = EmbeddingFixture::with_sub_agents(
        &[
            &[ModelAct::Delegate("t", false)],
            &[ModelAct::Fail],
            &[ModelAct::Say("then without")],
        ],
        |_| {},
    );
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "find something").await;
    assert_eq!(
        tool_results(&result),
        ["the sub-agent did not finish: too much to do"]
    );
    assert!(matches!(result.outcome, Outcome::Finished(..)));
}

// proves: UP-19
#[tokio::test(start_paused = true)]
async fn sub_agents_nest_at_most_five_deep() {
    let mut script: Vec<&[ModelAct]> = vec![&[ModelAct::Delegate("t", false)]; 6];
    script.extend([&[ModelAct::Say("up")] as &[ModelAct]; 6]);
    let world = EmbeddingFixture::with_sub_agents(&script, |_| {});
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "dig").await;
    let found = children(&world).await;
    assert_eq!(found.len(), 5);
    let refused = found.iter().flat_map(|(_, loops)| loops).any(|record| {
        record
            .messages
            .iter()
            .any(|message| message.message.text().contains("nest no deeper than 5"))
    });
    assert!(refused);
}

#[tokio::test(start_paused = true)]
async fn prompt_hooks_and_limits_apply_to_sub_agents() {
    let world = EmbeddingFixture::with_sub_agents(
        &[
            &[ModelAct::Delegate("t", false)],
            &[ModelAct::Call("l", "look")],
            &[ModelAct::Call("m", "look")],
            &[ModelAct::Say("thanks")],
        ],
        |settings| settings.forced_reply = false,
    );
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let only_task = RecordingHooks::with_answer(hook_set!(before_tool), |hook| match hook {
        HookRequest::BeforeTool(call) if call.name != "task" => HookVerdict::Stop("no".to_owned()),
        _ => HookVerdict::Continue,
    });
    let options = PromptOptions {
        hooks: vec![only_task],
        limits: Some(Limits {
            turns: 3,
            ..Limits::default()
        }),
        ..PromptOptions::default()
    };
    let ticket = session.prompt(vec![Content::text("look")], options);
    ticket.unwrap().result().await.unwrap();
    assert!(world.ran.lock().unwrap().is_empty());
    let [(_, loops)] = &children(&world).await[..] else {
        panic!("one child")
    };
    assert_eq!(loops[0].turns.len(), 2);
    assert!(matches!(
        loops[0].outcome,
        Some(Outcome::Stopped(TurnStop::MaxTurns(_)))
    ));
}
