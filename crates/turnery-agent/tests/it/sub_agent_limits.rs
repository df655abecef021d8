//! Tests of what a sub-agent shares with its parent: the remaining limits and the remembered approvals.

use crate::fixture::{
    EmbeddingFixture, LARGE_CAPACITY, ModelAct, choose, run_text, start_text, yield_while,
};
use crate::sub_agents::children;
use std::sync::Arc;
use turnery_agent::{Session, Settings};
use turnery_engine::{LimitKind, Limits, Message, Price, ReachedLimit};
use turnery_tools::Mode;

/// Returns why the only child was stopped.
async fn child_stop_reason(world: &EmbeddingFixture) -> String {
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
    let script: &[&[ModelAct]] = &[
        &[ModelAct::Spend(50, 10), ModelAct::Call("l", "look")],
        &[ModelAct::Spend(0, 0), ModelAct::Delegate("t", false)],
        &[ModelAct::Spend(20, 5), ModelAct::Call("m", "look")],
        &[ModelAct::Spend(20, 5), ModelAct::Call("n", "look")],
        &[ModelAct::Say("enough")],
        &[ModelAct::Say("thanks")],
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
        let world = EmbeddingFixture::with_sub_agents(script, with_limits(limits));
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
    let world = EmbeddingFixture::with_sub_agents(
        &[
            &[ModelAct::Spend(50, 10), ModelAct::Delegate("t", false)],
            &[ModelAct::Spend(30, 15), ModelAct::Say("gold")],
            &[ModelAct::Say("never said")],
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
    let world = EmbeddingFixture::with_sub_agents(
        &[&[ModelAct::Delegate("t", false)]],
        with_limits(limits),
    );
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
fn approval_fixture(first: &str) -> EmbeddingFixture {
    EmbeddingFixture::with_sub_agents(
        &[
            &[ModelAct::Delegate("a", false)],
            &[ModelAct::Call("r", "ring")],
            &[ModelAct::Say("one")],
            &[ModelAct::Delegate("b", false)],
            &[ModelAct::Call("r", "ring")],
            &[ModelAct::Say("two")],
            &[ModelAct::Call("r", "ring")],
            &[ModelAct::Say("three")],
        ],
        |_| {},
    )
    .with_answers(&[choose(first)])
}

async fn calls_and_questions(world: &EmbeddingFixture, session: &Session) -> (usize, usize) {
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
    let world = EmbeddingFixture::with_sub_agents(
        &[
            &[ModelAct::Call("r", "ring")],
            &[ModelAct::Delegate("t", true)],
            &[ModelAct::Call("s", "ring")],
            &[ModelAct::Say("could not")],
            &[ModelAct::Say("pity")],
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
    let world = EmbeddingFixture::with_sub_agents(
        &[
            &[
                ModelAct::Delegate("a", false),
                ModelAct::Delegate("b", false),
            ],
            &[ModelAct::Call("r", "ring")],
            &[ModelAct::Wait(gate.clone()), ModelAct::Call("s", "ring")],
            &[ModelAct::Say("one")],
            &[ModelAct::Say("two")],
            &[ModelAct::Say("three")],
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
