//! Tests that slow work runs off the thread that drives sessions, and reacts to a cancel.

use crate::fixture::{ToolFixture, new_call};
use serde_json::{Value, json};
use std::{future::Future, sync::mpsc, task::Poll};
use turnery_engine::{ToolEnvelope, ToolErrorKind};

/// Cancels a call while its work waits for another thread. There is one such thread, which is kept busy until
/// the cancel was sent.
fn run_and_cancel(bench: &ToolFixture, name: &str, args: Value) -> ToolEnvelope {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (release, held) = mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || held.recv());
        let call = new_call(name, args);
        let mut run = Box::pin(bench.toolbox.run(&call, &bench.cx));
        std::future::poll_fn(|cx| {
            assert!(run.as_mut().poll(cx).is_pending(), "{name} works elsewhere");
            Poll::Ready(())
        })
        .await;
        bench.cx.cancel.cancel();
        release.send(()).expect("the thread waits");
        let _ = busy.await.expect("it ended");
        run.await
    })
}

#[test]
fn cancelled_search_or_listing_stops() {
    for (name, args) in [
        ("search", json!({"pattern": "needle"})),
        ("list_dir", json!({})),
        ("find_files", json!({"pattern": "*"})),
    ] {
        let bench = ToolFixture::new();
        bench.write_file("a", "needle");
        let envelope = run_and_cancel(&bench, name, args);
        let failure = envelope.result.expect_err("it was cancelled");
        assert_eq!(failure.kind, ToolErrorKind::Cancelled, "{name}");
    }
}

#[test]
fn files_are_not_written_after_cancel() {
    for (name, args) in [
        (
            "edit_file",
            json!({"path": "a", "old_text": "needle", "new_text": "x"}),
        ),
        ("write_file", json!({"path": "a", "content": "x"})),
    ] {
        let bench = ToolFixture::new();
        bench.write_file("a", "needle");
        let envelope = run_and_cancel(&bench, name, args);
        let failure = envelope.result.expect_err("it was cancelled");
        assert_eq!(failure.kind, ToolErrorKind::Cancelled, "{name}");
        assert_eq!(bench.read_bytes("a"), b"needle", "{name}");
    }
}

#[test]
fn files_are_read_off_the_session_thread() {
    let bench = ToolFixture::new();
    bench.write_file("a", "needle");
    let envelope = run_and_cancel(&bench, "read_file", json!({"path": "a"}));
    assert_eq!(
        envelope.result,
        Ok(vec![turnery_engine::Content::text("1\tneedle\n")])
    );
}
