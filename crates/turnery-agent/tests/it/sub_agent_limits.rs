//! Tests of what a sub-agent shares with its parent: the remaining limits and the remembered approvals.

use crate::fixture::{Act, LARGE_CAPACITY, World, choose, run_text, start_text, yield_while};
use crate::sub_agents::children;
use std::sync::Arc;
use turnery_agent::{Session, Settings};
use turnery_engine::{LimitKind, Limits, Message, Price, ReachedLimit};
use turnery_tools::Mode;

/// Returns why the only child was stopped.
async fn child_stop_reason(world: &World) -> String {
    let children = children(world).await;
    let [(_, loops)] = &children[..] else {
        panic!("one child: {}", children.len())
    };
    let texts = loops[0].messages.iter().filter_map(|it| match &it.message {
        Message::System { text } => Some(text.clone()),
        Message::User { .. } | Message::Assistant { .. } | Message::ToolResult { .. } => None,
    });
    texts.collect()
}

fn with_limits(limits: Limits) -> impl FnOnce(&mut Settings) {
    move |settings| {
        settings.limits = limits;
        settings.forced_reply = false;
        settings.price = Some(Price {
            input: 10_000_000_000,
            output: 10_000_000_000,
            ..Price::default()
        });
    }
}

#[tokio::test(start_paused = true)]
async fn child_gets_only_the_remaining_budget() {
    let script: &[&[Act]] = &[
        &[Act::Spend(50, 10), Act::Call("l", "look")],
        &[Act::Spend(0, 0), Act::Delegate("t", false)],
        &[Act::Spend(20, 5), Act::Call("m", "look")],
        &[Act::Spend(20, 5), Act::Call("n", "look")],
        &[Act::Say("enough")],
        &[Act::Say("thanks")],
    ];
    let cases = [
        (
            Limits {
                turns: 4,
                ..Limits::default()
            },
            "[Agent stopped: Max turns reached (4/4)]",
        ),
        (
            Limits {
                tokens: 100,
                ..Limits::default()
            },
            "[Agent stopped: Max tokens reached (110/100)]",
        ),
        (
            Limits {
                cost: Some(1_000_000),
                ..Limits::default()
            },
            "[Agent stopped: Max cost reached (1.10/1.00)]",
        ),
    ];
    for (limits, text) in cases {
        let world = World::with_sub_agents(script, with_limits(limits));
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        run_text(&session, "find something").await;
        assert_eq!(child_stop_reason(&world).await, text);
    }
}

#[tokio::test(start_paused = true)]
async fn child_spending_reduces_parent_budget() {
    let limits = Limits {
        tokens: 100,
        ..Limits::default()
    };
    let world = World::with_sub_agents(
        &[
            &[Act::Spend(50, 10), Act::Delegate("t", false)],
            &[Act::Spend(30, 15), Act::Say("gold")],
            &[Act::Say("never said")],
        ],
        with_limits(limits),
    );
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "find something").await;
    assert_eq!(
        result.outcome.limit(),
        Some(&ReachedLimit {
            kind: LimitKind::Tokens,
            text: "Max tokens reached (105/100)".to_owned(),
        })
    );
    assert_eq!(result.usage.total(), 60);
}

#[tokio::test(start_paused = true)]
async fn child_is_not_started_without_turns_left() {
    let limits = Limits {
        turns: 1,
        ..Limits::default()
    };
    let world = World::with_sub_agents(&[&[Act::Delegate("t", false)]], with_limits(limits));
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "find something").await;
    assert!(children(&world).await.is_empty());
    let outcome = result.executions()[0].envelope.result.clone();
    assert_eq!(
        outcome.unwrap_err().message,
        "nothing is left for a sub-agent (Max turns reached (1/1)): end the work yourself"
    );
}

/// World in which two children in turn, and then the parent, call `ring`; the user answers once.
fn approval_fixture(first: &str) -> World {
    World::with_sub_agents(
        &[
            &[Act::Delegate("a", false)],
            &[Act::Call("r", "ring")],
            &[Act::Say("one")],
            &[Act::Delegate("b", false)],
            &[Act::Call("r", "ring")],
            &[Act::Say("two")],
            &[Act::Call("r", "ring")],
            &[Act::Say("three")],
        ],
        |_| {},
    )
    .with_answers(&[choose(first)])
}

async fn calls_and_questions(world: &World, session: &Session) -> (usize, usize) {
    let ticket = start_text(session, "ring");
    ticket.result().await.unwrap();
    let ran = world.ran.lock().unwrap().len();
    (ran, world.client.asked.lock().unwrap().len())
}

/// PERM-6
#[tokio::test(start_paused = true)]
async fn approval_in_child_applies_to_siblings_and_parent() {
    for (answered, ran) in [("allow_always", 3), ("reject_always", 0)] {
        let world = approval_fixture(answered);
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        assert_eq!(
            calls_and_questions(&world, &session).await,
            (ran, 1),
            "{answered}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn approval_does_not_widen_read_only_child() {
    let world = World::with_sub_agents(
        &[
            &[Act::Call("r", "ring")],
            &[Act::Delegate("t", true)],
            &[Act::Call("s", "ring")],
            &[Act::Say("could not")],
            &[Act::Say("pity")],
        ],
        |settings| settings.mode = Mode::Ask,
    )
    .with_answers(&[choose("allow_always")]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    assert_eq!(calls_and_questions(&world, &session).await, (1, 1));
}

/// The second child runs in parallel to the one that asks, and has begun before the answer.
#[tokio::test(start_paused = true)]
async fn approval_in_child_applies_to_running_sibling() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let world = World::with_sub_agents(
        &[
            &[Act::Delegate("a", false), Act::Delegate("b", false)],
            &[Act::Call("r", "ring")],
            &[Act::Wait(gate.clone()), Act::Call("s", "ring")],
            &[Act::Say("one")],
            &[Act::Say("two")],
            &[Act::Say("three")],
        ],
        |_| {},
    )
    .with_answers(&[choose("allow_always")]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let ticket = start_text(&session, "ring");
    yield_while(|| world.ran.lock().unwrap().is_empty()).await;
    gate.notify_one();
    ticket.result().await.unwrap();
    assert_eq!(world.ran.lock().unwrap().len(), 2);
    assert_eq!(world.client.asked.lock().unwrap().len(), 1);
}
