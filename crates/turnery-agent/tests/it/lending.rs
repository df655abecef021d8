//! Lending: what a sub-agent has of its parent: what is left of its limits, and what a person has said
//! for good.

use crate::world::{Act, ROOM, World, say};
use std::sync::Arc;
use turnery_agent::{Answer, Session, Settings};
use turnery_engine::{Detail, LimitKind, Limits, LoopRecord, Message, Price};
use turnery_store::ListQuery;
use turnery_tools::Mode;

fn answer(id: &str) -> Answer {
    Answer::Chose(id.to_owned())
}

/// The loops of all child sessions.
async fn children(world: &World) -> Vec<Arc<LoopRecord>> {
    let query = ListQuery {
        spawned: true,
        ..ListQuery::default()
    };
    let mut found = Vec::new();
    for info in world.store.list(query).await.unwrap().sessions {
        if info.spawned_by.is_some() {
            found.extend(world.store.loops(&info.id, 0).await.unwrap());
        }
    }
    found
}

/// Why the one child was stopped.
async fn stopped(world: &World) -> String {
    let loops = children(world).await;
    let [record] = &loops[..] else {
        panic!("one child: {}", loops.len())
    };
    let said = record.messages.iter().filter_map(|it| match &it.message {
        Message::System { text } => Some(text.clone()),
        Message::User { .. } | Message::Assistant { .. } | Message::ToolResult { .. } => None,
    });
    said.collect()
}

fn limited(limits: Limits) -> impl FnOnce(&mut Settings) {
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
async fn a_child_has_no_more_than_its_prompt_has_left() {
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
        let world = World::delegating(script, limited(limits));
        let (session, _seen) = world.session(ROOM).await;
        say(&session, "find something").result().await.unwrap();
        assert_eq!(stopped(&world).await, text);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_child_spent_is_gone_for_its_parent() {
    let limits = Limits {
        tokens: 100,
        ..Limits::default()
    };
    let world = World::delegating(
        &[
            &[Act::Spend(50, 10), Act::Delegate("t", false)],
            &[Act::Spend(30, 15), Act::Say("gold")],
            &[Act::Say("never said")],
        ],
        limited(limits),
    );
    let (session, _seen) = world.session(ROOM).await;
    let result = say(&session, "find something").result().await.unwrap();
    assert_eq!(
        result.detail,
        Some(Detail::Limit {
            kind: LimitKind::Tokens,
            text: "Max tokens reached (105/100)".to_owned(),
        })
    );
    assert_eq!(result.usage.total(), 60);
}

#[tokio::test(start_paused = true)]
async fn where_no_turn_is_left_there_is_no_child() {
    let limits = Limits {
        turns: 1,
        ..Limits::default()
    };
    let world = World::delegating(&[&[Act::Delegate("t", false)]], limited(limits));
    let (session, _seen) = world.session(ROOM).await;
    let result = say(&session, "find something").result().await.unwrap();
    assert!(children(&world).await.is_empty());
    let told = result.executions()[0].envelope.result.clone();
    assert_eq!(
        told.unwrap_err().message,
        "nothing is left for a sub-agent (Max turns reached (1/1)): end the work yourself"
    );
}

/// Two children one after the other, and then the parent itself, ring; the person answers once.
fn rings(first: &str) -> World {
    World::delegating(
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
    .answering(&[answer(first)])
}

async fn rung(world: &World, session: &Session) -> (usize, usize) {
    let ticket = say(session, "ring");
    ticket.result().await.unwrap();
    let ran = world.ran.lock().unwrap().len();
    (ran, world.person.asked.lock().unwrap().len())
}

/// PERM-6
#[tokio::test(start_paused = true)]
async fn what_is_answered_for_good_to_a_child_holds_for_its_siblings_and_its_parent() {
    for (answered, ran) in [("allow_always", 3), ("reject_always", 0)] {
        let world = rings(answered);
        let (session, _seen) = world.session(ROOM).await;
        assert_eq!(rung(&world, &session).await, (ran, 1), "{answered}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_allowed_for_good_widens_no_child_that_may_only_read() {
    let world = World::delegating(
        &[
            &[Act::Call("r", "ring")],
            &[Act::Delegate("t", true)],
            &[Act::Call("s", "ring")],
            &[Act::Say("could not")],
            &[Act::Say("pity")],
        ],
        |settings| settings.mode = Mode::Ask,
    )
    .answering(&[answer("allow_always")]);
    let (session, _seen) = world.session(ROOM).await;
    assert_eq!(rung(&world, &session).await, (1, 1));
}

/// It works beside the one that asks, and has begun before the answer.
#[tokio::test(start_paused = true)]
async fn what_is_answered_for_good_to_one_child_holds_for_another_that_runs() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let world = World::delegating(
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
    .answering(&[answer("allow_always")]);
    let (session, _seen) = world.session(ROOM).await;
    let ticket = say(&session, "ring");
    while world.ran.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    gate.notify_one();
    ticket.result().await.unwrap();
    assert_eq!(world.ran.lock().unwrap().len(), 2);
    assert_eq!(world.person.asked.lock().unwrap().len(), 1);
}
