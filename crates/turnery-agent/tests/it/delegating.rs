//! Sub-agents: a child session does part of the work, can do no more than its parent, and ends with it.

use crate::world::{Act, ROOM, World, drain, live, say};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use turnery_agent::{Answer, HookCx, Hooks, PromptOptions, PromptResult};
use turnery_engine::{
    Content, ContinuationKind, Event, EventKind, Hook, HookSet, HookVerdict, Limits, LoopRecord,
    Message, Outcome, SessionId, TurnStop, TurnTrigger, oracle,
};
use turnery_store::ListQuery;
use turnery_tools::{Mode, Rule};

/// What the parent's model reads of its call.
fn results(result: &PromptResult) -> Vec<String> {
    let texts = result
        .messages()
        .filter_map(|message| match &message.message {
            Message::ToolResult { .. } => Some(message.message.text()),
            Message::System { .. } | Message::User { .. } | Message::Assistant { .. } => None,
        });
    texts.collect()
}

/// The child sessions of all sessions, with their loops.
pub(crate) async fn children(world: &World) -> Vec<(SessionId, Vec<Arc<LoopRecord>>)> {
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

// proves: LOOP-24, LOOP-63, LOOP-65, LOOP-66, LOOP-67, LOOP-68, LOOP-69, LOOP-88, TURN-17, TURN-45, UP-18, S7
#[tokio::test(start_paused = true)]
async fn a_sub_agent_works_in_a_session_of_its_own_and_answers_the_call() {
    let world = World::delegating(
        &[
            &[Act::Spend(10, 1), Act::Delegate("t", false)],
            &[Act::Spend(3, 4), Act::Say("gold")],
            &[Act::Spend(20, 2), Act::Say("thanks")],
        ],
        |_| {},
    );
    let (session, mut seen) = world.session(ROOM).await;
    let result = say(&session, "find something").result().await.unwrap();
    assert_eq!(results(&result), ["gold"]);
    assert_eq!(world.puppet.request(1), ["dig"]);
    let [(child, loops)] = &children(&world).await[..] else {
        panic!("one child")
    };
    let parent = &result.loops[0];
    let own = &loops[0];
    assert_eq!(own.parent_loop_id.as_ref(), Some(&parent.loop_id));
    assert_eq!(own.continuation_kind, ContinuationKind::Initial);
    assert_eq!(own.turns[0].triggered_by, TurnTrigger::SubAgent);
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
    oracle::check(&live(&drain(&mut seen))).unwrap();
}

// proves: C-17, I6, I7, LASH-66, LASH-101, LASH-102, LASH-103, LASH-104, UP-19
#[tokio::test(start_paused = true)]
async fn what_a_child_spends_is_told_live_and_kept_apart() {
    let world = World::delegating(
        &[
            &[Act::Spend(10, 1), Act::Delegate("t", false)],
            &[Act::Spend(3, 4), Act::Call("l", "look")],
            &[Act::Spend(5, 6), Act::Say("gold")],
            &[Act::Spend(20, 2), Act::Say("thanks")],
        ],
        |_| {},
    );
    let (session, mut seen) = world.session(ROOM).await;
    let result = say(&session, "find something").result().await.unwrap();
    let told: Vec<(u32, u64)> = live(&drain(&mut seen))
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ChildUsageReported { child, .. } => {
                Some((child.iteration, child.cumulative.total()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(told, [(0, 7), (1, 18)]);
    assert_eq!(result.usage.total(), 33);
    assert_eq!(result.total_usage().total(), 51);
    let [row] = &result.children_usage()[..] else {
        panic!("one row")
    };
    assert_eq!((&*row.source, &*row.model), ("subagent", "puppet/one"));
}

// proves: THEME-14
#[tokio::test(start_paused = true)]
async fn a_childs_question_reaches_the_same_person_in_the_name_of_the_call() {
    let world = World::delegating(
        &[
            &[Act::Delegate("t", false)],
            &[Act::Call("r", "ring")],
            &[Act::Say("rung")],
            &[Act::Say("thanks")],
        ],
        |_| {},
    )
    .answering(&[Answer::Chose("allow_once".to_owned())]);
    let (session, _seen) = world.session(ROOM).await;
    let result = say(&session, "ring").result().await.unwrap();
    assert_eq!(results(&result), ["rung"]);
    assert_eq!(*world.ran.lock().unwrap(), ["ring"]);
    let asked = world.person.asked.lock().unwrap();
    assert_eq!(asked[0].session_id, *session.id());
    assert_eq!(asked[0].call_id.as_str(), "t");
    assert_eq!(asked[0].tool_name, "ring");
}

#[tokio::test(start_paused = true)]
async fn a_child_can_do_no_more_than_its_parent() {
    let rule: Rule = "shell(ring-the-bell:*)".parse().unwrap();
    let denies = |settings: &mut turnery_agent::Settings| {
        settings.mode = Mode::Auto;
        settings.deny = vec![rule.clone()];
    };
    let plans = |settings: &mut turnery_agent::Settings| settings.mode = Mode::Plan;
    let script: &[&[Act]] = &[
        &[Act::Delegate("t", false)],
        &[Act::Call("r", "ring")],
        &[Act::Say("could not")],
        &[Act::Say("pity")],
    ];
    let reads: &[&[Act]] = &[
        &[Act::Delegate("t", true)],
        &[Act::Call("r", "ring")],
        &[Act::Say("could not")],
        &[Act::Say("pity")],
    ];
    let free = |settings: &mut turnery_agent::Settings| settings.mode = Mode::Auto;
    for world in [
        World::delegating(script, denies),
        World::delegating(script, plans),
        World::delegating(reads, free),
    ] {
        let (session, _seen) = world.session(ROOM).await;
        say(&session, "ring").result().await.unwrap();
        assert!(world.ran.lock().unwrap().is_empty());
        assert!(world.person.asked.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_mode_that_becomes_stricter_holds_for_the_child_at_once() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let world = World::delegating(
        &[
            &[Act::Delegate("t", false)],
            &[Act::Wait(gate.clone()), Act::Call("r", "ring")],
            &[Act::Say("could not")],
            &[Act::Say("pity")],
        ],
        |settings| settings.mode = Mode::Auto,
    );
    let (session, mut seen) = world.session(ROOM).await;
    let ticket = say(&session, "ring");
    // The child has begun: its first call of the model waits.
    while world.puppet.requests.lock().unwrap().len() < 2 {
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

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_the_child_and_its_record_says_so() {
    let world = World::delegating(
        &[
            &[Act::Delegate("t", false)],
            &[Act::Say("so far"), Act::Hang],
        ],
        |_| {},
    );
    let (session, mut seen) = world.session(ROOM).await;
    let ticket = say(&session, "find something");
    loop {
        let item = seen.recv().await.unwrap();
        if live(&[item])
            .iter()
            .any(|event| matches!(event.kind, EventKind::ToolExecutionOutput { .. }))
        {
            break;
        }
    }
    session.cancel_running_turns();
    let cancelled = Outcome::Stopped(TurnStop::Cancelled);
    let result = ticket.result().await.unwrap();
    assert_eq!(result.outcome, cancelled);
    assert_eq!(*world.puppet.alive.lock().unwrap(), 0);
    let [(_, loops)] = &children(&world).await[..] else {
        panic!("one child")
    };
    assert_eq!(loops[0].outcome, Some(cancelled));
    assert_eq!(result.loops[0].child_loop_refs.len(), 1);
}

// proves: PROMPT-12, G-17
#[tokio::test(start_paused = true)]
async fn a_new_prompt_ends_no_child_at_work() {
    let told = Arc::new(tokio::sync::Notify::new());
    let world = World::delegating(
        &[
            &[Act::Delegate("t", false)],
            &[
                Act::Say("so far"),
                Act::Wait(told.clone()),
                Act::Say("gold"),
            ],
            &[Act::Say("thanks")],
            &[Act::Say("the second")],
        ],
        |_| {},
    );
    let (session, mut seen) = world.session(ROOM).await;
    let first = say(&session, "find something");
    loop {
        let item = seen.recv().await.unwrap();
        let is_output = |event: &Event| matches!(event.kind, EventKind::ToolExecutionOutput { .. });
        if live(&[item]).iter().any(is_output) {
            break;
        }
    }
    let second = say(&session, "and another thing");
    // All that the new prompt could do to the child has been done.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        *world.puppet.alive.lock().unwrap(),
        1,
        "the child still works"
    );
    told.notify_one();
    let first = first.result().await.unwrap();
    assert_eq!(results(&first), ["so far\ngold"]);
    let second = second.result().await.unwrap();
    for result in [&first, &second] {
        assert!(matches!(result.outcome, Outcome::Finished(_)), "{result:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn children_of_one_answer_run_side_by_side() {
    let world = World::delegating(
        &[
            &[Act::Delegate("a", false), Act::Delegate("b", false)],
            // Each waits for the other.
            &[Act::Call("m", "meet")],
            &[Act::Call("m", "meet")],
            &[Act::Say("met")],
            &[Act::Say("met")],
            &[Act::Say("thanks")],
        ],
        |_| {},
    );
    let (session, _seen) = world.session(ROOM).await;
    let result = say(&session, "meet").result().await.unwrap();
    assert_eq!(results(&result), ["met", "met"]);
    assert_eq!(children(&world).await.len(), 2);
    assert_eq!(result.loops[0].child_loop_refs.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_fails_is_a_failed_call_and_the_parent_goes_on() {
    let world = World::delegating(
        &[
            &[Act::Delegate("t", false)],
            &[Act::Fail],
            &[Act::Say("then without")],
        ],
        |_| {},
    );
    let (session, _seen) = world.session(ROOM).await;
    let result = say(&session, "find something").result().await.unwrap();
    assert_eq!(
        results(&result),
        ["the sub-agent did not finish: too much to do"]
    );
    assert!(matches!(result.outcome, Outcome::Finished(_)));
}

#[tokio::test(start_paused = true)]
async fn sub_agents_nest_five_deep_and_no_deeper() {
    let mut script: Vec<&[Act]> = vec![&[Act::Delegate("t", false)]; 6];
    script.extend([&[Act::Say("up")] as &[Act]; 6]);
    let world = World::delegating(&script, |_| {});
    let (session, _seen) = world.session(ROOM).await;
    say(&session, "dig").result().await.unwrap();
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

/// Says no to every tool but the one that makes sub-agents.
struct Guard;

impl Hooks for Guard {
    fn set(&self) -> HookSet {
        HookSet {
            before_tool: true,
            ..HookSet::default()
        }
    }

    fn ask<'a>(&'a self, _: &'a HookCx, hook: &'a Hook) -> BoxFuture<'a, HookVerdict> {
        let verdict = match hook {
            Hook::BeforeTool(call) if call.name != "task" => HookVerdict::Stop("no".to_owned()),
            _ => HookVerdict::Go,
        };
        Box::pin(std::future::ready(verdict))
    }
}

#[tokio::test(start_paused = true)]
async fn the_hooks_and_limits_of_one_prompt_hold_for_its_sub_agents_too() {
    let world = World::delegating(
        &[
            &[Act::Delegate("t", false)],
            &[Act::Call("l", "look")],
            &[Act::Call("m", "look")],
            &[Act::Say("thanks")],
        ],
        |settings| settings.forced_reply = false,
    );
    let (session, _seen) = world.session(ROOM).await;
    let options = PromptOptions {
        hooks: vec![Arc::new(Guard)],
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
    assert_eq!(loops[0].outcome, Some(Outcome::Stopped(TurnStop::MaxTurns)));
}
