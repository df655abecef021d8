//! Tests when the outbox of a session is open, and how much it accepts.

use super::{
    events,
    support::{NO_OPTIONAL_UPDATES, event},
};
use crate::{
    server::{
        acp_version::AcpVersion, encoder::SharedEncoder, outbox::WireOutbox,
        prompt_barrier::PromptBarrier,
    },
    transport::writer::WriteSender,
};
use proptest::prelude::*;
use std::{
    future::poll_fn,
    task::{Context, Poll, Waker},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use turnery_agent::{Outbox, OutboxItem, view::SessionView};
use turnery_engine::{Event, EventKind, SessionId, TurnTrigger};

fn outbox(
    out: WriteSender,
    barrier: &PromptBarrier,
    gate: Option<CancellationToken>,
) -> WireOutbox {
    let encoder = SharedEncoder::new(AcpVersion::V1, NO_OPTIONAL_UPDATES);
    WireOutbox::new(
        &SessionId::from("s1"),
        out,
        barrier.clone(),
        SessionView::default(),
        encoder,
        gate,
    )
}

fn is_open(outbox: &mut WireOutbox) -> bool {
    outbox.poll_ready(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
}

fn delta(text: &str) -> Event {
    event(0, events::text_delta("m1", text))
}

fn loop_start_event() -> Event {
    event(0, events::loop_start(None))
}

/// The outbox of a session accepts no update before the response that names the session (SESS-7).
// proves: SESS-7, G-5
#[tokio::test]
async fn outbox_is_closed_until_session_response() {
    let (out, _lines) = mpsc::channel(4);
    let answered = CancellationToken::new();
    let mut outbox = outbox(out, &PromptBarrier::new().0, Some(answered.clone()));
    assert!(!is_open(&mut outbox));
    answered.cancel();
    assert!(is_open(&mut outbox));
}

/// A prompt sends nothing before the response to the previous one is in the queue.
#[tokio::test]
async fn new_loop_waits_for_barrier() {
    let (out, _lines) = mpsc::channel(4);
    let (barrier, mut waiting) = PromptBarrier::new();
    let mut outbox = outbox(out, &barrier, None);
    assert!(is_open(&mut outbox));
    outbox.push(OutboxItem::Live(&loop_start_event()));
    assert!(!is_open(&mut outbox));
    let pass = waiting.recv().await.unwrap();
    assert!(!is_open(&mut outbox));
    pass.send(()).unwrap();
    assert!(is_open(&mut outbox));
    // A connection that has ended blocks nobody.
    outbox.push(OutboxItem::Live(&loop_start_event()));
    drop(waiting);
    assert!(is_open(&mut outbox));
}

/// A client that does not read blocks the session; one that has disconnected does not.
// proves: D-15, C-10
#[tokio::test]
async fn full_queue_blocks_and_closed_queue_opens() {
    let (out, mut lines) = mpsc::channel(3);
    let mut outbox = outbox(out, &PromptBarrier::new().0, None);
    let mut taken = 0;
    while is_open(&mut outbox) {
        outbox.push(OutboxItem::Live(&delta("x")));
        taken += 1;
    }
    assert_eq!(taken, 3);
    lines.recv().await.unwrap();
    assert!(is_open(&mut outbox));
    outbox.push(OutboxItem::Live(&delta("x")));
    assert!(!is_open(&mut outbox));
    drop(lines);
    for _ in 0..10 {
        poll_fn(|cx| outbox.poll_ready(cx)).await;
        outbox.push(OutboxItem::Live(&delta("x")));
    }
}

/// The queue is bounded in bytes too: at most one large batch per session waits in it.
#[tokio::test]
async fn large_batch_is_written_before_next_item() {
    let (out, mut lines) = mpsc::channel(256);
    let mut outbox = outbox(out, &PromptBarrier::new().0, None);
    assert!(is_open(&mut outbox));
    outbox.push(OutboxItem::Live(&delta(&"x".repeat(100_000))));
    assert!(!is_open(&mut outbox));
    let large = lines.recv().await.unwrap();
    assert!(!is_open(&mut outbox));
    drop(large);
    assert!(is_open(&mut outbox));
    outbox.push(OutboxItem::Live(&delta("x")));
    assert!(is_open(&mut outbox));
    outbox.push(OutboxItem::Live(&delta(&"x".repeat(100_000))));
    drop(lines);
    assert!(is_open(&mut outbox), "nobody will ever read it");
}

/// Step of a session that uses an outbox.
#[derive(Clone, Copy, Debug)]
enum OutboxStep {
    /// The session waits for room in the queue and, if there is some, pushes the event with this index.
    Show(usize),
    /// The session reserves room in the queue and releases it unused.
    GiveUp,
    /// The client reads a line.
    Read,
}

fn steps() -> impl Strategy<Value = Vec<(usize, OutboxStep)>> {
    let act = prop_oneof![
        4 => (0..4usize).prop_map(OutboxStep::Show),
        1 => Just(OutboxStep::GiveUp),
        2 => Just(OutboxStep::Read),
    ];
    prop::collection::vec((0..3usize, act), 0..60)
}

proptest! {
    /// However many sessions share the queue and whatever they show, all permits are free again once every
    /// session is idle and the client has read all output.
    // proves: D-15
    #[test]
    fn reserved_permits_return_when_idle(acts in steps(), places in 1..4usize) {
        let (out, mut lines) = mpsc::channel(places);
        let barrier = PromptBarrier::new().0;
        let mut outboxes: Vec<_> = (0..3).map(|_| outbox(out.clone(), &barrier, None)).collect();
        // The first two events write lines, the others none.
        let events = [
            delta("x"),
            event(0, EventKind::PlanUpdated { entries: Vec::new() }),
            event(0, EventKind::TurnStart { trigger: TurnTrigger::User }),
            event(0, EventKind::ParallelStart { agent_id: "a".to_owned(), loop_ids: Vec::new() }),
        ];
        for (who, act) in acts {
            match act {
                OutboxStep::Show(which) => {
                    if is_open(&mut outboxes[who]) {
                        outboxes[who].push(OutboxItem::Live(&events[which]));
                    }
                }
                OutboxStep::GiveUp => {
                    let _ = is_open(&mut outboxes[who]);
                    outboxes[who].release_slot();
                }
                OutboxStep::Read => {
                    let _ = lines.try_recv();
                }
            }
        }
        for outbox in &mut outboxes {
            outbox.release_slot();
        }
        while lines.try_recv().is_ok() {}
        prop_assert_eq!(out.capacity(), places);
    }
}

/// Regression: 256 sessions with one prompt each used up all permits of the queue.
#[test]
fn events_without_updates_hold_no_permit() {
    let (out, _lines) = mpsc::channel(2);
    let mut outbox = outbox(out.clone(), &PromptBarrier::new().0, None);
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
        outbox.push(OutboxItem::Live(&silent));
        assert_eq!(out.capacity(), 2, "{silent:?}");
    }
}
