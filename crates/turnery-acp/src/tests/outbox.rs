//! The outbox of a session: when it is open, and how much it takes.

use super::parts::{NONE, event};
use crate::{
    barrier::Barrier,
    dialect::{Dialect, Encoder},
    outbox::WireOutbox,
    till::Till,
    writer::Sender,
};
use proptest::prelude::*;
use std::{
    future::poll_fn,
    task::{Context, Poll, Waker},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use turnery_agent::{Item, Outbox};
use turnery_engine::{
    ContinuationKind, Event, EventKind, MessageId, PromptId, SessionId, StreamDelta, TurnTrigger,
};

fn outbox(out: Sender, barrier: &Barrier, gate: Option<CancellationToken>) -> WireOutbox {
    let encoder = Encoder::new(Dialect::V1, NONE, Till::default());
    WireOutbox::new(&SessionId::from("s1"), out, barrier.clone(), encoder, gate)
}

fn is_open(outbox: &mut WireOutbox) -> bool {
    outbox.poll_room(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
}

fn delta(text: &str) -> Event {
    let delta = StreamDelta::Text {
        block: 0,
        text: text.to_owned(),
    };
    event(
        0,
        EventKind::Delta {
            message_id: MessageId::from("m1"),
            delta,
        },
    )
}

fn start() -> Event {
    event(
        0,
        EventKind::LoopStart {
            agent_id: "a".to_owned(),
            prompt_id: PromptId::from("p1"),
            parent_loop_id: None,
            continuation_kind: ContinuationKind::Initial,
            config: None,
            tag: None,
            metadata: None,
            frame_id: None,
            frame: None,
        },
    )
}

/// SESS-7, by construction.
// proves: SESS-7, G-5
#[tokio::test]
async fn nothing_goes_out_before_the_session_is_answered() {
    let (out, _lines) = mpsc::channel(4);
    let answered = CancellationToken::new();
    let mut outbox = outbox(out, &Barrier::new().0, Some(answered.clone()));
    assert!(!is_open(&mut outbox));
    answered.cancel();
    assert!(is_open(&mut outbox));
}

/// A prompt says nothing before the answer to the one before it is in the queue.
#[tokio::test]
async fn a_new_loop_waits_for_the_barrier() {
    let (out, _lines) = mpsc::channel(4);
    let (barrier, mut waiting) = Barrier::new();
    let mut outbox = outbox(out, &barrier, None);
    assert!(is_open(&mut outbox));
    outbox.push(Item::Live(&start()));
    assert!(!is_open(&mut outbox));
    let pass = waiting.recv().await.unwrap();
    assert!(!is_open(&mut outbox));
    pass.send(()).unwrap();
    assert!(is_open(&mut outbox));
    // A connection that has ended holds nobody up.
    outbox.push(Item::Live(&start()));
    drop(waiting);
    assert!(is_open(&mut outbox));
}

/// A client that does not read holds the session back; one that is gone does not.
// proves: D-15
#[tokio::test]
async fn a_full_queue_shuts_the_outbox_and_a_closed_one_opens_it() {
    let (out, mut lines) = mpsc::channel(3);
    let mut outbox = outbox(out, &Barrier::new().0, None);
    let mut taken = 0;
    while is_open(&mut outbox) {
        outbox.push(Item::Live(&delta("x")));
        taken += 1;
    }
    assert_eq!(taken, 3);
    lines.recv().await.unwrap();
    assert!(is_open(&mut outbox));
    outbox.push(Item::Live(&delta("x")));
    assert!(!is_open(&mut outbox));
    drop(lines);
    for _ in 0..10 {
        poll_fn(|cx| outbox.poll_room(cx)).await;
        outbox.push(Item::Live(&delta("x")));
    }
}

/// The queue is bounded in bytes too: one large batch of a session waits in it, not 256.
#[tokio::test]
async fn a_large_batch_is_written_before_the_next_is_taken() {
    let (out, mut lines) = mpsc::channel(256);
    let mut outbox = outbox(out, &Barrier::new().0, None);
    assert!(is_open(&mut outbox));
    outbox.push(Item::Live(&delta(&"x".repeat(100_000))));
    assert!(!is_open(&mut outbox));
    let large = lines.recv().await.unwrap();
    assert!(!is_open(&mut outbox));
    drop(large);
    assert!(is_open(&mut outbox));
    outbox.push(Item::Live(&delta("x")));
    assert!(is_open(&mut outbox));
    outbox.push(Item::Live(&delta(&"x".repeat(100_000))));
    drop(lines);
    assert!(is_open(&mut outbox), "nobody will ever read it");
}

/// Step of a session that uses an outbox.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// The session asks for room, and shows this if there is some.
    Show(usize),
    /// The session asks for room, and has nothing to show after all.
    GiveUp,
    /// The client reads a line.
    Read,
}

fn acts() -> impl Strategy<Value = Vec<(usize, Act)>> {
    let act = prop_oneof![
        4 => (0..4usize).prop_map(Act::Show),
        1 => Just(Act::GiveUp),
        2 => Just(Act::Read),
    ];
    prop::collection::vec((0..3usize, act), 0..60)
}

proptest! {
    /// The law of the shared queue: however many sessions use it, and whatever they show, its places
    /// are all free again once each is idle and the client has read what was written.
    // proves: D-15
    #[test]
    fn reserved_places_return_when_all_is_quiet(acts in acts(), places in 1..4usize) {
        let (out, mut lines) = mpsc::channel(places);
        let barrier = Barrier::new().0;
        let mut outboxes: Vec<_> = (0..3).map(|_| outbox(out.clone(), &barrier, None)).collect();
        // The first two write lines, the others write none.
        let events = [
            delta("x"),
            event(0, EventKind::PlanUpdated { entries: Vec::new() }),
            event(0, EventKind::TurnStart { trigger: TurnTrigger::User }),
            event(0, EventKind::ParallelStart { agent_id: "a".to_owned(), loop_ids: Vec::new() }),
        ];
        for (who, act) in acts {
            match act {
                Act::Show(which) => {
                    if is_open(&mut outboxes[who]) {
                        outboxes[who].push(Item::Live(&events[which]));
                    }
                }
                Act::GiveUp => {
                    let _ = is_open(&mut outboxes[who]);
                    outboxes[who].release_room();
                }
                Act::Read => {
                    let _ = lines.try_recv();
                }
            }
        }
        for outbox in &mut outboxes {
            outbox.release_room();
        }
        while lines.try_recv().is_ok() {}
        prop_assert_eq!(out.capacity(), places);
    }
}

/// 256 sessions that were prompted once took all places of the queue, for ever.
#[test]
fn silent_events_keep_no_place() {
    let (out, _lines) = mpsc::channel(2);
    let mut outbox = outbox(out.clone(), &Barrier::new().0, None);
    for kind in [
        EventKind::TurnStart {
            trigger: TurnTrigger::User,
        },
        EventKind::TurnEnd {
            usage: None,
            tool_results: Vec::new(),
        },
    ] {
        let silent = event(0, kind);
        assert!(is_open(&mut outbox));
        outbox.push(Item::Live(&silent));
        assert_eq!(out.capacity(), 2, "{silent:?}");
    }
}
