//! Which message a prompt became, prompts that are taken back while they wait, and the end as an outbox
//! is told of it.

use crate::world::{Act, ROOM, World, drain, live, say};
use std::{
    sync::{Arc, Mutex},
    task::{Context, Poll},
};
use tokio::sync::Notify;
use turnery_agent::{CancellationToken, Item, Outbox, PromptError, PromptOptions, Session, Ticket};
use turnery_engine::{Content, EventKind, Message};

fn held(session: &Session, text: &str, cancel: CancellationToken) -> Ticket {
    let options = PromptOptions {
        withdrawable: true,
        ..PromptOptions::cancelled_by(cancel)
    };
    session.prompt(vec![Content::text(text)], options).unwrap()
}

// proves: V2-4
/// Long before the prompt's end, and it is the message that is shown.
#[tokio::test(start_paused = true)]
async fn a_ticket_tells_which_message_its_prompt_became() {
    let world = World::new(&[&[Act::Hang]]);
    let (session, mut seen) = world.session(ROOM).await;
    let mut ticket = say(&session, "hi");
    let inserted = ticket.inserted().await.unwrap();
    session.cancel_running_turns();
    ticket.result().await.unwrap();
    let shown = live(&drain(&mut seen)).into_iter().find_map(|event| {
        let EventKind::MessageEnd { message } = event.kind else {
            return None;
        };
        matches!(message.message, Message::User { .. }).then(|| message.message_id.clone())
    });
    assert_eq!(shown, Some(inserted));
}

// proves: V2-7
/// A prompt that waits is taken back at once, by its own token or with all others, and
/// leaves nothing; the one before it goes on.
#[tokio::test(start_paused = true)]
async fn a_prompt_that_waits_can_be_taken_back() {
    let signal = Arc::new(Notify::new());
    let world = World::new(&[
        &[Act::Say("one"), Act::Wait(signal.clone())],
        &[Act::Say("three")],
    ]);
    let (session, _seen) = world.session(ROOM).await;
    let mut first = say(&session, "first");
    first.inserted().await.unwrap();
    let cancel = CancellationToken::new();
    let mut second = held(&session, "second", cancel.clone());
    cancel.cancel();
    assert_eq!(second.inserted().await, None);
    assert_eq!(second.result().await.unwrap_err(), PromptError::Withdrawn);
    let third = held(&session, "third", CancellationToken::new());
    signal.notify_one();
    first.result().await.unwrap();
    third.result().await.unwrap();
    assert_eq!(world.puppet.request(1), ["first", "one", "third"]);
}

// proves: V2-7
/// A cancel before the beginning leaves nothing behind even if nobody asks for the message.
#[tokio::test(start_paused = true)]
async fn a_cancel_before_the_beginning_leaves_nothing() {
    let world = World::new(&[&[Act::Say("ok")]]);
    let (session, mut seen) = world.session(ROOM).await;
    let first = held(&session, "first", CancellationToken::new());
    let second = held(&session, "second", CancellationToken::new());
    session.cancel_running_turns();
    for ticket in [first, second] {
        assert_eq!(ticket.result().await.unwrap_err(), PromptError::Withdrawn);
    }
    assert!(drain(&mut seen).is_empty());
    say(&session, "third").result().await.unwrap();
    assert_eq!(world.puppet.request(0), ["third"]);
}

/// What an outbox that follows is given, in one word each.
#[derive(Clone, Default)]
struct Following(Arc<Mutex<Vec<&'static str>>>);

impl Outbox for Following {
    fn poll_room(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    fn push(&mut self, item: Item<'_>) {
        let mut told = self.0.lock().unwrap();
        match item {
            Item::Live(event) if matches!(event.kind, EventKind::LoopStart { .. }) => {
                told.push("start");
            }
            Item::Live(event) if matches!(event.kind, EventKind::LoopEnd { .. }) => {
                told.push("end");
            }
            Item::Live(_) | Item::Replay(_) | Item::Info { .. } => {}
            Item::Ended(end) => told.push(match end {
                Ok(_) => "ended",
                Err(_) => "failed",
            }),
        }
    }

    fn follows(&self) -> bool {
        true
    }
}

// proves: V2-8
/// The end comes after all that was shown of a prompt, and before its result.
#[tokio::test(start_paused = true)]
async fn an_outbox_that_follows_is_told_of_the_end() {
    let world = World::new(&[&[Act::Say("one")], &[Act::Say("two")]]);
    let (mut ports, _seen) = world.ports(ROOM);
    let following = Following::default();
    ports.outbox = Box::new(following.clone());
    let made = world.agent.create(world.request(), |_| ports).await;
    let session = made.unwrap();
    let told = || following.0.lock().unwrap().clone();
    say(&session, "first").result().await.unwrap();
    assert_eq!(told(), ["start", "end", "ended"]);
    say(&session, "second").result().await.unwrap();
    assert_eq!(told()[3..], ["start", "end", "ended"]);
}
